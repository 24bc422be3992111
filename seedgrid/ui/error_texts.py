"""The sentences of `errors.MESSAGES` in Chinese and Korean, by code. A test keeps them complete.

Knows nothing of components; `texts.py` hands them to the page.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ErrorWords(NamedTuple):
    """One sentence of an error; `{name}` is filled in with its data."""

    zh: str
    ko: str


ERROR_TEXTS: Final[dict[str, ErrorWords]] = {
    "seed_range": ErrorWords(
        "种子 {value} 超出范围：请用 0 到 4294967295 的整数。",
        "시드 {value}은(는) 범위를 벗어났습니다: 0부터 4294967295까지의 정수를 쓰세요.",
    ),
    "seed_text": ErrorWords(
        "“{value}”不是种子列表：请写 7、0-3 或 7, 11, 42。",
        "“{value}”은(는) 시드 목록이 아닙니다: 7, 0-3 또는 7, 11, 42처럼 쓰세요.",
    ),
    "seed_count": ErrorWords(
        "{value} 个种子太多了：一次最多 {limit} 个。",
        "시드 {value}개는 너무 많습니다: 한 번에 {limit}개까지 쓰세요.",
    ),
    "prompt_empty": ErrorWords(
        "提示词是空的：请写出画面要表现什么。",
        "프롬프트가 비어 있습니다: 그림에 무엇을 담을지 쓰세요.",
    ),
    "prompt_long": ErrorWords(
        "{field}有 {value} 个字符：最多 {limit} 个。",
        "{field}이(가) {value}자입니다: {limit}자까지 쓰세요.",
    ),
    "prompt_characters": ErrorWords(
        "{field}含有文本不允许的字符（{value}）：请删除它。",
        "{field}에 쓸 수 없는 문자({value})가 있습니다: 지워 주세요.",
    ),
    "size_range": ErrorWords(
        "尺寸 {value} 不可用：请用“宽x高”，每边 {low} 到 {high} 像素。",
        "크기 {value}은(는) 쓸 수 없습니다: 가로x세로, {low}부터 {high} 픽셀까지 쓰세요.",
    ),
    "size_multiple": ErrorWords(
        "尺寸 {value} 不适合这个模型：请用 {multiple} 的倍数。",
        "크기 {value}은(는) 이 모델에 맞지 않습니다: {multiple}의 배수를 쓰세요.",
    ),
    "size_text": ErrorWords(
        "“{value}”不是尺寸：请写“宽x高”，例如 512x512。",
        "“{value}”은(는) 크기가 아닙니다: 512x512처럼 가로x세로로 쓰세요.",
    ),
    "size_fixed": ErrorWords(
        "尺寸 {value} 不适合这个模型：它只能画 {width}x{height}。",
        "크기 {value}은(는) 이 모델에 맞지 않습니다: {width}x{height}만 그립니다.",
    ),
    "steps_range": ErrorWords(
        "步数 {value} 不可用：请用 1 到 {limit} 的整数。",
        "단계 수 {value}은(는) 쓸 수 없습니다: 1부터 {limit}까지의 정수를 쓰세요.",
    ),
    "guidance_range": ErrorWords(
        "引导强度 {value} 不可用：请用 0 到 30 的数。",
        "가이던스 {value}은(는) 쓸 수 없습니다: 0부터 30까지의 수를 쓰세요.",
    ),
    "width_range": ErrorWords(
        "锁宽 {value} 不可用：请用 1 到 16 的整数。",
        "잠금 너비 {value}은(는) 쓸 수 없습니다: 1부터 16까지의 정수를 쓰세요.",
    ),
    "scheduler_unknown": ErrorWords(
        "调度器“{value}”不适用于这个模型：请选 {choices}。",
        "스케줄러 “{value}”은(는) 이 모델에서 쓸 수 없습니다: {choices} 중에서 고르세요.",
    ),
    "dtype_unknown": ErrorWords(
        "数值格式“{value}”未知：请选 {choices}。",
        "수 형식 “{value}”을(를) 모릅니다: {choices} 중에서 고르세요.",
    ),
    "determinism_unknown": ErrorWords(
        "确定性级别“{value}”未知：请选 {choices}。",
        "결정성 수준 “{value}”을(를) 모릅니다: {choices} 중에서 고르세요.",
    ),
    "variations_empty": ErrorWords(
        "没有可做的变体：请至少写一个后缀或提示词。",
        "만들 변형이 없습니다: 덧붙일 말이나 프롬프트를 하나 이상 쓰세요.",
    ),
    "recipe_invalid": ErrorWords(
        "这个配方不能用：{reason}。", "이 레시피는 쓸 수 없습니다: {reason}."
    ),
}
