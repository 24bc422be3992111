"""Every word on the page, in English, Chinese and Korean; the sentences of errors are in errors.py.

Knows nothing of components. Labels go through `gr.I18n`; what Python says at run time goes to the
browser as a key and its data, and the scripts there look the key up in the same table.

    >>> TEXTS["generate"].ko
    '만들기'
"""

from __future__ import annotations

from typing import Final

from seedgrid.core.errors import MESSAGES
from seedgrid.web.locales.error_texts import ERROR_TEXTS
from seedgrid.web.locales.library_texts import LIBRARY_TEXTS
from seedgrid.web.locales.verdict_texts import VERDICT_TEXTS
from seedgrid.web.locales.words import LOCALES, Language, Words

_PAGE: Final[dict[str, Words]] = {
    # The bar
    "prompt_placeholder": Words("What should the picture show?", "想画什么？", "무엇을 그릴까요?"),
    "prompt_label": Words("Prompt", "提示词", "프롬프트"),
    "seeds_placeholder": Words("Seeds", "种子", "시드"),
    "seeds_label": Words("Seeds", "种子", "시드"),
    "generate": Words("Generate", "生成", "만들기"),
    "stop": Words("Stop", "停止", "중지"),
    "library_open": Words("Library", "作品库", "보관함"),
    "hints_title": Words("Words this model knows", "这个模型认识的词", "이 모델이 아는 단어"),
    "hints_subjects": Words("Subjects", "主题", "주제"),
    "hints_styles": Words("Styles", "风格", "화풍"),
    "hints_modifiers": Words("Variations", "变体", "변형"),
    "hints_attributes": Words("Details", "细节", "세부"),
    # The stage
    "stage_label": Words("Pictures", "画面", "그림"),
    "invite_title": Words(
        "Four seeds, four pictures", "四个种子，四幅画", "시드 네 개, 그림 네 장"
    ),
    "invite_text": Words(
        "Press Generate, then click the one you like.",
        "点击“生成”，再选出你喜欢的一幅。",
        "‘만들기’를 누르고 마음에 드는 그림을 고르세요.",
    ),
    "cell_empty": Words("Cell {number}", "第 {number} 格", "{number}번 칸"),
    "cell_waiting": Words(
        "Cell {number}, seed {seed}: waiting. {words}",
        "第 {number} 格，种子 {seed}：等待中。{words}",
        "{number}번 칸, 시드 {seed}: 대기 중. {words}",
    ),
    "cell_painting": Words(
        "Cell {number}, seed {seed}: painting. {words}",
        "第 {number} 格，种子 {seed}：正在绘制。{words}",
        "{number}번 칸, 시드 {seed}: 그리는 중. {words}",
    ),
    "cell_done": Words(
        "Picture {number}, seed {seed}: {words}",
        "第 {number} 幅，种子 {seed}：{words}",
        "{number}번 그림, 시드 {seed}: {words}",
    ),
    "cell_stopped": Words(
        "Cell {number}, seed {seed}: stopped",
        "第 {number} 格，种子 {seed}：已停止",
        "{number}번 칸, 시드 {seed}: 중지됨",
    ),
    "picture_gone": Words(
        "The file of this picture is gone", "这幅画的文件已丢失", "이 그림의 파일이 사라졌습니다"
    ),
    "picture_trashed": Words("In the trash", "在回收站里", "휴지통에 있음"),
    # The status line
    "status_ready": Words("Ready", "就绪", "준비됨"),
    "status_warming": Words(
        "Loading the model {model}. You can already press Generate.",
        "正在加载模型 {model}，现在就可以点击“生成”。",
        "{model} 모델을 불러오는 중입니다. 지금 ‘만들기’를 눌러도 됩니다.",
    ),
    "status_unreachable": Words(
        "SeedGrid does not answer; trying again…",
        "SeedGrid 没有回应，正在重试…",
        "SeedGrid가 응답하지 않아 다시 시도하는 중…",
    ),
    "status_interrupted": Words(
        "SeedGrid was started anew meanwhile. What was finished is in the library.",
        "SeedGrid 已重新启动。已完成的画面都在作品库中。",
        "그사이 SeedGrid가 다시 시작되었습니다. 완성된 그림은 보관함에 있습니다.",
    ),
    "status_next": Words("You are next…", "马上轮到你…", "다음 차례입니다…"),
    "status_queued": Words(
        "Waiting: {number} before you…",
        "排队中：前面还有 {number} 个…",
        "대기 중: 앞에 {number}개…",
    ),
    "status_loading": Words(
        "Loading the model {model}…", "正在加载模型 {model}…", "{model} 모델을 불러오는 중…"
    ),
    "status_compiling": Words(
        "Compiling {model} for this size: about a minute, once…",
        "正在为此尺寸编译 {model}：约一分钟，仅此一次…",
        "이 크기에 맞게 {model} 모델을 컴파일하는 중: 약 1분, 처음 한 번만…",
    ),
    "status_started": Words("Painting…", "正在绘制…", "그리는 중…"),
    "status_step": Words(
        "Step {number} of {total}", "第 {number} 步，共 {total} 步", "{total}단계 중 {number}단계"
    ),
    "status_saving": Words("Saving…", "正在保存…", "저장하는 중…"),
    "status_done": Words("Done in {seconds} s", "完成，用时 {seconds} 秒", "완료, {seconds}초"),
    "status_remembered": Words(
        "Taken from the library, bit for bit: {number}",
        "取自作品库，逐位相同：{number} 幅",
        "보관함에서 가져옴, 비트까지 같음: {number}장",
    ),
    "again": Words("Make it again", "重新生成", "다시 만들기"),
    "status_cancelled": Words(
        "Stopped. What was finished is kept.",
        "已停止，已完成的画面都保留着。",
        "중지했습니다. 완성된 그림은 남아 있습니다.",
    ),
    "status_stopping": Words("Stopping…", "正在停止…", "중지하는 중…"),
    # The card
    "pick_title": Words("Pick a picture", "选一幅画", "그림을 고르세요"),
    "pick_text": Words(
        "Click one, or press 1 to 4", "点击一幅，或按 1 到 4", "클릭하거나 1–4 키를 누르세요"
    ),
    "pick_touch": Words("Tap the one you like", "点选你喜欢的一幅", "마음에 드는 그림을 누르세요"),
    "card_parent": Words(
        "Four variations of this picture. Pick one to go on, or change the words and refine again.",
        "这幅画的四个变体。选一个继续，或改写词语再次细化。",
        "이 그림의 변형 네 장입니다. 하나를 골라 이어 가거나, 말을 바꿔 다시 다듬으세요.",
    ),
    "card_lost": Words(
        "The file of this picture is gone, its recipe is kept: refine it, or make it again.",
        "这幅画的文件已丢失，配方还在：可以继续细化，或重新生成。",
        "이 그림의 파일은 사라졌지만 레시피는 남아 있습니다: 다듬거나 다시 만드세요.",
    ),
    "card_trashed": Words(
        "This picture is in the trash. The library gives it back.",
        "这幅画在回收站里，可在作品库中恢复。",
        "이 그림은 휴지통에 있습니다. 보관함에서 되돌릴 수 있습니다.",
    ),
    "lock_title": Words(
        "The seed is locked: the words change, the noise does not",
        "种子已锁定：词语会变，噪声不变",
        "시드가 잠겼습니다: 말은 바뀌어도 노이즈는 그대로입니다",
    ),
    "favourite_title": Words("Favourite (F)", "收藏 (F)", "즐겨찾기 (F)"),
    "facts_steps": Words("{number} steps", "{number} 步", "{number}단계"),
    "facts_compiled": Words("compiled", "已编译", "컴파일됨"),
    "facts_guidance": Words("guidance {number}", "引导 {number}", "가이던스 {number}"),
    "facts_without": Words("without {words}", "不含 {words}", "제외: {words}"),
    "vary_label": Words("Variation", "变体", "변형"),
    "vary_placeholder": Words(", what to add", "，添加什么", ", 무엇을 더할까요"),
    "refine": Words("Refine this seed", "细化这个种子", "이 시드 다듬기"),
    "subtle": Words("Subtle variations", "细微变化", "은은한 변화"),
    "strong": Words("Strong variations", "强烈变化", "강한 변화"),
    "zoom": Words("Zoom", "放大", "확대"),
    "save": Words("Save PNG", "保存 PNG", "PNG 저장"),
    "compare": Words("Compare", "对比", "비교"),
    "compare_before": Words("Parent", "原图", "원본"),
    "compare_after": Words("This one", "这一幅", "이 그림"),
    "compare_slide": Words("Slide between the two", "在两幅之间滑动", "두 그림 사이를 밀어 보기"),
    "compare_difference": Words("Difference", "差异", "차이"),
    "close": Words("Close", "关闭", "닫기"),
    # The rail
    "back": Words("Back", "返回", "뒤로"),
    "rail_label": Words("The rounds of this work", "这件作品的各轮", "이 작품의 라운드"),
    "rail_seeds": Words("Seeds", "种子", "시드"),
    "rail_refine": Words("Refine {number}", "细化 {number}", "다듬기 {number}"),
    "rail_go": Words("Go to {name}: {words}", "前往{name}：{words}", "{name}(으)로 가기: {words}"),
    # Settings
    "settings": Words("Settings", "设置", "설정"),
    "negative_label": Words("Leave out", "不要出现", "제외할 것"),
    "negative_placeholder": Words(
        "What the picture should not show", "画面中不该有的东西", "그림에 없어야 할 것"
    ),
    "more_prompts_label": Words(
        "Table: more prompts, one a line",
        "表格：更多提示词，每行一个",
        "표: 프롬프트 더하기, 한 줄에 하나",
    ),
    "more_prompts_placeholder": Words(
        "Each is painted on every seed", "每个都会在所有种子上绘制", "각각 모든 시드로 그립니다"
    ),
    "mix_label": Words("A little of other seeds", "掺入一点别的种子", "다른 시드를 조금 섞기"),
    "mix_placeholder": Words(
        "Seed:weight, as in 7:0.1", "种子:权重，例如 7:0.1", "시드:비중, 예: 7:0.1"
    ),
    "steps_label": Words("Steps", "步数", "단계 수"),
    "guidance_label": Words("Guidance", "引导强度", "가이던스"),
    "size_label": Words("Size", "尺寸", "크기"),
    "scheduler_label": Words("Scheduler", "调度器", "스케줄러"),
    "model_label": Words("Model", "模型", "모델"),
    "device_label": Words("Device", "设备", "장치"),
    "determinism_label": Words("Determinism", "确定性", "결정성"),
    "dtype_label": Words("Number format", "数值格式", "수 형식"),
    "turbo_label": Words("Turbo", "加速", "터보"),
    "turbo_info": Words(
        "Faster, with other pixels; still locked and verifiable",
        "更快，像素会不同；仍然锁定、可验证",
        "더 빠르고 픽셀은 달라집니다. 잠금과 검증은 그대로입니다",
    ),
    "compiled_label": Words("Compiled", "编译模型", "컴파일"),
    "compiled_info": Words(
        "Faster steps, other pixels; waits a minute once for each size",
        "每步更快，像素会不同；每种尺寸首次要等一分钟",
        "단계가 빨라지고 픽셀은 달라집니다. 크기마다 처음 한 번 1분쯤 기다립니다",
    ),
    "choice_auto": Words("Auto", "自动", "자동"),
    "determinism_strict": Words("Strict", "严格", "엄격"),
    "determinism_seeded": Words("Seeded", "仅固定噪声", "시드만"),
    "determinism_off": Words("Off", "关闭", "끔"),
    # Fields, as errors name them
    "name_steps": Words("steps", "步数", "단계 수"),
    "name_guidance": Words("guidance", "引导强度", "가이던스"),
    "name_size": Words("size", "尺寸", "크기"),
    "field_prompt": Words("prompt", "提示词", "프롬프트"),
    "field_negative": Words("negative prompt", "反向提示词", "제외 프롬프트"),
    "field_vary": Words("variation", "变体", "변형"),
    "field_note": Words("note", "备注", "메모"),
}


TEXTS: Final = _PAGE | LIBRARY_TEXTS | VERDICT_TEXTS


def page_texts() -> dict[str, dict[str, str]]:
    """Return every text and every error, by key and language, for the scripts of the page."""
    texts = {key: words._asdict() for key, words in TEXTS.items()}
    errors = {
        f"error_{code}": {"en": sentence} | _translated(code) for code, sentence in MESSAGES.items()
    }
    return texts | errors


def _translated(code: str) -> dict[str, str]:
    return ERROR_TEXTS[code]._asdict() if code in ERROR_TEXTS else {}


def labels() -> dict[str, dict[str, str]]:
    """Return the texts by Gradio's locale and key, for `gr.I18n`."""
    return {
        locale: {key: getattr(words, language) for key, words in TEXTS.items()}
        for language, locale in LOCALES.items()
    }


def choose_language(*wishes: str | None) -> Language:
    """Return the first language of ours among the wishes, English otherwise.

    Args:
        wishes: Language tags or `Accept-Language` headers, the strongest wish first.
    """
    for wish in wishes:
        for tag in (wish or "").split(","):
            name = tag.strip().lower().replace("_", "-").split(";")[0].split("-")[0]
            for language in LOCALES:
                if name == language:
                    return language
    return "en"
