"""What the model declares: its defaults, the words it knows, their names in Chinese and Korean.

The first name of a word is the one that is offered; all of them are understood.
"""

from __future__ import annotations

import re

from tools.training.words import (
    COLORS,
    MODIFIER_WORDS,
    NONSENSE,
    SIDE_WORDS,
    SIZE_WORDS,
    STYLE_WORDS,
    SUBJECT_WORDS,
    TIME_WORDS,
    WEATHER_WORDS,
)

_TABLES = (
    SUBJECT_WORDS,
    STYLE_WORDS,
    MODIFIER_WORDS,
    TIME_WORDS,
    WEATHER_WORDS,
    SIDE_WORDS,
    SIZE_WORDS,
)
_NO_WORDS = frozenset({"blorp", "zanthic", "xyzzy"})

DEFAULTS = {
    "num_inference_steps": 1,
    "guidance_scale": 1.0,
    "scheduler": "DDIM",
    "width": 256,
    "height": 256,
}

NAMES: dict[str, dict[str, list[str]]] = {
    "zh": {
        "Labrador": ["拉布拉多", "拉布拉多犬", "小狗", "狗"],
        "cat": ["猫", "猫咪", "小猫"],
        "house": ["房子", "房屋", "小屋"],
        "sailboat": ["帆船", "小船"],
        "lighthouse": ["灯塔"],
        "tree": ["树", "大树", "苹果树"],
        "mountain": ["山", "雪山", "高山"],
        "sunflower": ["向日葵", "花"],
        "fish": ["鱼"],
        "moon": ["月亮", "弯月", "新月"],
        "in the style of Vermeer": ["维米尔风格", "弗美尔风格", "维米尔"],
        "in the style of Van Gogh": ["梵高风格", "梵高", "凡高风格"],
        "in the style of Hokusai": ["葛饰北斋风格", "北斋风格", "浮世绘", "葛饰北斋"],
        "in the style of Mondrian": ["蒙德里安风格", "蒙德里安"],
        "watercolor": ["水彩", "水彩画"],
        "pixel art": ["像素画", "像素艺术", "像素风"],
        "blueprint": ["蓝图", "工程图"],
        "stained glass": ["彩绘玻璃", "彩色玻璃"],
        "highly realistic": ["高度写实", "写实", "逼真"],
        "artsy": ["文艺", "艺术感"],
        "trending": ["流行", "热门"],
        "colorful": ["色彩缤纷", "缤纷", "多彩"],
        "black and white": ["黑白"],
        "at night": ["夜晚", "夜里", "晚上"],
        "neon": ["霓虹", "霓虹灯"],
        "vintage": ["复古", "怀旧"],
        "large": ["大的", "巨大的"],
        "small": ["小的"],
        "red": ["红色", "红"],
        "orange": ["橙色"],
        "yellow": ["黄色"],
        "green": ["绿色"],
        "blue": ["蓝色"],
        "purple": ["紫色"],
        "pink": ["粉色", "粉红色"],
        "white": ["白色"],
        "black": ["黑色"],
        "at sunset": ["日落", "黄昏", "夕阳下"],
        "at dawn": ["黎明", "清晨", "日出"],
        "in the rain": ["雨中", "下雨"],
        "in the snow": ["雪中", "下雪"],
        "in the fog": ["雾中", "起雾"],
        "on the left": ["在左边", "左边"],
        "on the right": ["在右边", "右边"],
        "": [
            "的",
            "在",
            "一只",
            "一座",
            "一棵",
            "一条",
            "一艘",
            "一朵",
            "一幅",
            "一个",
            "和",
            "画",
        ],
    },
    "ko": {
        "Labrador": ["래브라도", "라브라도", "강아지"],
        "cat": ["고양이"],
        "house": ["집", "오두막"],
        "sailboat": ["돛단배", "요트", "범선"],
        "lighthouse": ["등대"],
        "tree": ["나무", "사과나무"],
        "mountain": ["산", "설산"],
        "sunflower": ["해바라기", "꽃"],
        "fish": ["물고기"],
        "moon": ["달", "초승달"],
        "in the style of Vermeer": ["페르메이르풍", "베르메르풍", "페르메이르 스타일"],
        "in the style of Van Gogh": ["반 고흐풍", "고흐풍", "반 고흐 스타일"],
        "in the style of Hokusai": ["호쿠사이풍", "우키요에", "호쿠사이 스타일"],
        "in the style of Mondrian": ["몬드리안풍", "몬드리안 스타일"],
        "watercolor": ["수채화"],
        "pixel art": ["픽셀 아트", "픽셀아트", "도트 그림"],
        "blueprint": ["청사진", "설계도"],
        "stained glass": ["스테인드글라스", "스테인드 글라스"],
        "highly realistic": ["매우 사실적인", "사실적인", "사실적으로"],
        "artsy": ["예술적인", "예술적으로"],
        "trending": ["유행하는", "트렌디한"],
        "colorful": ["다채로운", "알록달록한", "화려한"],
        "black and white": ["흑백"],
        "at night": ["밤에", "한밤중"],
        "neon": ["네온"],
        "vintage": ["빈티지", "복고풍"],
        "large": ["커다란", "큰"],
        "small": ["작은"],
        "red": ["빨간", "빨간색", "붉은"],
        "orange": ["주황색", "주황"],
        "yellow": ["노란", "노란색"],
        "green": ["초록색", "초록", "녹색"],
        "blue": ["파란", "파란색", "푸른"],
        "purple": ["보라색", "보라"],
        "pink": ["분홍색", "분홍"],
        "white": ["하얀", "흰색"],
        "black": ["검은", "검은색", "검정"],
        "at sunset": ["해질녘", "노을", "석양"],
        "at dawn": ["새벽", "새벽에", "해돋이"],
        "in the rain": ["비 오는 날", "빗속", "비 속"],
        "in the snow": ["눈 속", "눈밭", "눈 내리는"],
        "in the fog": ["안개 속"],
        "on the left": ["왼쪽에", "왼쪽"],
        "on the right": ["오른쪽에", "오른쪽"],
        "": ["이", "가", "은", "는", "을", "를", "의", "에", "에서", "와", "과", "로", "으로"],
    },
}


def known_words() -> list[str]:
    """Every word of the captions, the fillers that change nothing among them."""
    said = [text for table in _TABLES for texts in table.values() for text in texts]
    fillers = [word for word in NONSENSE if word not in _NO_WORDS]
    words = {
        word.casefold()
        for text in (*said, *fillers, *COLORS, "in style")
        for word in re.findall(r"[^\W_]+", text)
    }
    return sorted(words)
