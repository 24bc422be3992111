"""The words about the lock and about verdicts; `texts.py` puts all words together."""

# ruff: noqa: E501 (Chinese and Korean letters count twice)

from __future__ import annotations

from typing import Final

from seedgrid.web.locales.words import Words

VERDICT_TEXTS: Final[dict[str, Words]] = {
    # The lock and the verdict
    "lock_proven": Words("Lock proven", "锁已证实", "잠금 증명됨"),
    "lock_proven_why": Words(
        "Measured here: computed in a batch of {width}, this picture does not depend on its slot or its neighbours, to the last bit.",
        "在本机测得：每批 {width} 幅时，这幅画与所在位置和同批画面无关，逐位相同。",
        "여기서 재어 보니, {width}장씩 계산할 때 이 그림은 자리나 이웃과 무관하게 비트까지 같습니다.",
    ),
    "lock_fails": Words("Lock does not hold", "锁不成立", "잠금이 성립하지 않음"),
    "lock_fails_why": Words(
        "Measured here: in a batch of {asked}, neighbours can change this picture. It holds at a lock width of {width}.",
        "在本机测得：每批 {asked} 幅时，同批画面会影响它。锁宽为 {width} 时成立。",
        "여기서 재어 보니, {asked}장씩 계산하면 이웃이 이 그림을 바꿀 수 있습니다. 잠금 너비 {width}에서는 성립합니다.",
    ),
    "verify": Words("Verify", "验证", "검증"),
    "verdict_working": Words("Painting it again…", "正在重新绘制…", "다시 그리는 중…"),
    "verdict_step": Words(
        "Painting it again: step {number} of {total}",
        "正在重新绘制：第 {number} 步，共 {total} 步",
        "다시 그리는 중: {total}단계 중 {number}단계",
    ),
    "verdict_identical": Words("Identical", "完全相同", "동일함"),
    "verdict_identical_why": Words(
        "Painted again from its recipe, every bit is the same.",
        "按配方重新绘制，每一位都相同。",
        "레시피로 다시 그렸고 모든 비트가 같습니다.",
    ),
    "verdict_close": Words("Close", "接近", "비슷함"),
    "verdict_drifted": Words("Drifted", "有偏差", "달라짐"),
    "verdict_impossible": Words("Cannot be verified here", "这里无法验证", "여기서 검증할 수 없음"),
    "verdict_numbers": Words(
        "Largest difference {max} of 255, {pixels} pixels, {psnr} dB",
        "最大差值 {max}/255，{pixels} 个像素，{psnr} dB",
        "최대 차이 255 중 {max}, 픽셀 {pixels}개, {psnr} dB",
    ),
    "reason_passport_field": Words(
        "{name}: made with {then}, here {now}",
        "{name}：当时是 {then}，这里是 {now}",
        "{name}: 만들 때 {then}, 여기는 {now}",
    ),
    "reason_passport_missing": Words(
        "the picture holds no passport: nobody knows where it was made",
        "画面没有通行证：不知道它在哪里生成",
        "그림에 여권이 없습니다: 어디서 만들었는지 알 수 없습니다",
    ),
    "reason_restored": Words(
        "restored for this run: {what}", "本次已恢复：{what}", "이번 실행에 되살림: {what}"
    ),
    "reason_not_restored": Words(
        "cannot be restored here: {what}", "这里无法恢复：{what}", "여기서 되살릴 수 없음: {what}"
    ),
    "reason_altered": Words(
        "the pixels were changed after the picture was made",
        "画面生成后像素被改动过",
        "그림을 만든 뒤 픽셀이 바뀌었습니다",
    ),
    "reason_altered_but_reproduces": Words(
        "what was made then is made again, bit for bit; it was edited since",
        "当时的画面可以逐位重现；之后它被编辑过",
        "그때의 그림은 비트까지 다시 나옵니다. 그 뒤에 편집되었습니다",
    ),
    "reason_same_passport": Words(
        "the passport is the same, so its recipe was altered, or the picture was not made with it",
        "通行证相同，因此是配方被改过，或画面不是按它生成的",
        "여권이 같으므로 레시피가 바뀌었거나 이 레시피로 만든 그림이 아닙니다",
    ),
    "reason_lock_broken": Words(
        "under this passport a picture depends on its neighbours, as the probe found: only its"
        " whole grid reproduces",
        "在此通行证下，画面会受同批画面影响（探测结果）：只有整个网格才能重现",
        "이 여권에서는 그림이 이웃에 따라 달라집니다(검사 결과): 전체 그리드만 재현됩니다",
    ),
    "reason_fragile": Words(
        "this kind of model reproduces only on the same hardware and versions",
        "这类模型只能在相同的硬件和版本上重现",
        "이런 모델은 같은 하드웨어와 버전에서만 재현됩니다",
    ),
    "reason_close": Words(
        "within rounding: at most {limit} of 255, at least {psnr_db} dB",
        "在舍入范围内：最多 {limit}/255，至少 {psnr_db} dB",
        "반올림 범위 안: 255 중 {limit} 이하, {psnr_db} dB 이상",
    ),
    "reason_impossible": Words("{error}", "{error}", "{error}"),
    "reason_size": Words(
        "the picture has another size than its recipe gives",
        "画面的尺寸与配方不符",
        "그림 크기가 레시피와 다릅니다",
    ),
    "name_device": Words("device", "设备", "장치"),
    "name_threads": Words("threads", "线程数", "스레드"),
    "name_python": Words("Python", "Python", "Python"),
    "name_driver": Words("driver", "驱动", "드라이버"),
    "name_CPU instructions": Words("CPU instructions", "CPU 指令集", "CPU 명령어"),
    "name_instruction limit": Words("instruction limit", "指令限制", "명령어 제한"),
    "name_memory format": Words("memory format", "内存格式", "메모리 형식"),
}
