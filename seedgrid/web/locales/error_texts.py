"""The sentences of `errors.MESSAGES` in Chinese and Korean, by code. A test keeps them complete.

Knows nothing of components; `texts.py` hands them to the page.
"""

# ruff: noqa: E501 (a sentence stays on its line; Chinese and Korean letters count twice)

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
    "mix_text": ErrorWords(
        "“{value}”不是种子混合：请写“种子:权重”，例如 5:0.1, 7:0.3。",
        "“{value}”은(는) 시드 섞기가 아닙니다: 5:0.1, 7:0.3처럼 시드:비중으로 쓰세요.",
    ),
    "pictures_count": ErrorWords(
        "{value} 幅画太多了：一次最多 {limit} 幅。",
        "그림 {value}장은 너무 많습니다: 한 번에 {limit}장까지 쓰세요.",
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
    "model_missing": ErrorWords(
        "没有名为“{value}”的模型：请看 `seedgrid models`，或写一个文件夹。",
        "“{value}” 모델이 없습니다: `seedgrid models`를 보거나 폴더를 적으세요.",
    ),
    "run_cancelled": ErrorWords(
        "已停止，已完成的画面都保留着。", "중지했습니다. 완성된 그림은 남아 있습니다."
    ),
    "picture_nan": ErrorWords(
        "模型没有给出画面（NaN）：请试试数值格式 float32、更低的引导强度或另一个调度器。",
        "모델이 그림을 내지 못했습니다(NaN): 수 형식 float32, 더 낮은 가이던스 또는 다른 스케줄러를 써 보세요.",
    ),
    "run_unexpected": ErrorWords(
        "运行意外失败（{reason}）：日志里有说明。",
        "실행이 뜻밖에 실패했습니다({reason}): 로그를 보세요.",
    ),
    "too_many_runs": ErrorWords(
        "已有 {limit} 个任务在排队或运行：请停止一个，或稍等。",
        "이미 {limit}개 작업이 대기 또는 실행 중입니다: 하나를 멈추거나 기다리세요.",
    ),
    "engine_closed": ErrorWords(
        "SeedGrid 正在关闭：请重新启动。", "SeedGrid가 닫히는 중입니다: 다시 시작하세요."
    ),
    "model_not_offered": ErrorWords(
        "这里不提供模型“{value}”：请选 {choices}。",
        "“{value}” 모델은 여기서 쓸 수 없습니다: {choices} 중에서 고르세요.",
    ),
    "model_name": ErrorWords(
        "“{value}”不是模型名：请看 `seedgrid models`。",
        "“{value}”은(는) 모델 이름이 아닙니다: `seedgrid models`를 보세요.",
    ),
    "model_not_downloaded": ErrorWords(
        "模型“{value}”不在这台机器上：请先运行 `seedgrid models --download {value}`。",
        "“{value}” 모델이 이 컴퓨터에 없습니다: 먼저 `seedgrid models --download {value}`를 실행하세요.",
    ),
    "model_not_one": ErrorWords(
        "“{value}”不是模型：里面没有 model_index.json。",
        "“{value}”은(는) 모델이 아닙니다: model_index.json이 없습니다.",
    ),
    "model_family": ErrorWords(
        "模型“{value}”是 {family}，SeedGrid 不能用它作画：{choices}。",
        "“{value}” 모델은 {family}이며 SeedGrid로 그릴 수 없습니다: {choices}.",
    ),
    "model_pickle": ErrorWords(
        "模型“{value}”是 pickle 文件（{file}），可能运行代码：请用 .safetensors 版本。",
        "“{value}” 모델은 코드를 실행할 수 있는 pickle({file})입니다: .safetensors 판을 쓰세요.",
    ),
    "model_code": ErrorWords(
        "模型“{value}”想运行自己的代码（{file}）：SeedGrid 不允许。",
        "“{value}” 모델이 자체 코드({file})를 실행하려 합니다: SeedGrid는 허용하지 않습니다.",
    ),
    "model_damaged": ErrorWords(
        "模型“{value}”在 {file} 处损坏：请从原处重新获取。",
        "“{value}” 모델의 {file}이(가) 손상되었습니다: 다시 받아 오세요.",
    ),
    "model_changed": ErrorWords(
        "模型“{value}”的权重不是画出这幅画的那一份。",
        "“{value}” 모델의 가중치가 이 그림을 만든 것과 다릅니다.",
    ),
    "model_configs": ErrorWords(
        "“{value}”需要它所属系列的配置：请运行 `seedgrid models --download {hub_id}`。",
        "“{value}”에는 해당 계열의 설정이 필요합니다: `seedgrid models --download {hub_id}`를 실행하세요.",
    ),
    "model_unrecognised": ErrorWords(
        "“{value}”不是 SeedGrid 认得的 Stable Diffusion 检查点：请把它的配置放进旁边同名的文件夹。",
        "“{value}”은(는) SeedGrid가 아는 Stable Diffusion 체크포인트가 아닙니다: 설정을 옆의 같은 이름 폴더에 넣으세요.",
    ),
    "download_failed": ErrorWords(
        "模型“{value}”下载失败：{reason}。", "“{value}” 모델을 내려받지 못했습니다: {reason}."
    ),
    "device_missing": ErrorWords(
        "这台机器没有设备“{value}”：请选 {choices}。",
        "이 컴퓨터에는 “{value}” 장치가 없습니다: {choices} 중에서 고르세요.",
    ),
    "offload_needs_gpu": ErrorWords(
        "卸载方式“{value}”需要 GPU：在 CPU 上请用 none。",
        "오프로드 “{value}”에는 GPU가 필요합니다: CPU에서는 none을 쓰세요.",
    ),
    "attention_unknown": ErrorWords(
        "注意力实现“{value}”未知：请选 {choices}。",
        "어텐션 “{value}”을(를) 모릅니다: {choices} 중에서 고르세요.",
    ),
    "cublas_too_late": ErrorWords(
        "严格确定性要求在 CUDA 启动前设置 CUBLAS_WORKSPACE_CONFIG=:16:8（现在是 {value}）：请设置后重启 SeedGrid，或改用“仅固定噪声”。",
        "엄격한 결정성에는 CUDA 시작 전에 CUBLAS_WORKSPACE_CONFIG=:16:8이 필요합니다(지금은 {value}): 설정하고 SeedGrid를 다시 시작하거나 ‘시드만’을 쓰세요.",
    ),
    "picture_blank": ErrorWords(
        "模型给出的画面只有一种颜色：请试试 float32 或更低的引导强度。",
        "모델이 한 가지 색의 그림을 냈습니다: float32나 더 낮은 가이던스를 써 보세요.",
    ),
    "picture_withheld": ErrorWords(
        "模型的安全检查扣下了种子 {value} 的画面。",
        "모델의 안전 검사기가 시드 {value}의 그림을 막았습니다.",
    ),
    "memory_full": ErrorWords(
        "{width}x{height}、每批 {lock_width} 幅超出了 {device} 的内存：请用更小的尺寸、卸载或更小的锁宽。",
        "{width}x{height}, 묶음 {lock_width}은(는) {device} 메모리에 들어가지 않습니다: 더 작은 크기, 오프로드 또는 더 작은 잠금 너비를 쓰세요.",
    ),
    "not_deterministic": ErrorWords(
        "这个模型需要的一种运算在这里没有确定性实现：请改用“仅固定噪声”。（{reason}）",
        "이 모델에 필요한 연산의 결정적 형태가 여기에는 없습니다: ‘시드만’을 쓰세요. ({reason})",
    ),
    "noise_mix_unsupported": ErrorWords(
        "这个模型不能混合多个种子的噪声：请去掉混合。",
        "이 모델은 여러 시드의 노이즈를 섞을 수 없습니다: 섞지 마세요.",
    ),
    "portable_refused": ErrorWords(
        "此模型或采样器无法做到“每台机器同一张图”：{value} 没有可移植规则。请换一个采样器，或关闭此项。",
        "이 모델이나 샘플러로는 ‘모든 기기에서 같은 그림’을 만들 수 없습니다: {value}에 이식 규칙이 없습니다. 다른 샘플러를 고르거나 끄십시오.",
    ),
    "pipeline_refused": ErrorWords(
        "模型拒绝了这些设置：{reason}。", "모델이 이 설정을 거절했습니다: {reason}."
    ),
    "out_folder": ErrorWords(
        "文件夹“{value}”不能用（{reason}）：请用 --out 指定另一个。",
        "“{value}” 폴더를 쓸 수 없습니다({reason}): --out으로 다른 폴더를 지정하세요.",
    ),
    "language_unknown": ErrorWords(
        "页面没有语言“{value}”：请选 {choices}。",
        "페이지에 “{value}” 언어가 없습니다: {choices} 중에서 고르세요.",
    ),
    "address_refused": ErrorWords(
        "页面不能监听 {value}（{reason}）：请换 --host 或 --port。",
        "{value}에서 페이지를 열 수 없습니다({reason}): 다른 --host나 --port를 쓰세요.",
    ),
    "bench_missing": ErrorWords(
        zh="{value} 处没有基准测试：请从源码目录运行。",
        ko="{value} 에 벤치마크가 없습니다. 소스 체크아웃에서 실행하세요.",
    ),
    "bench_unknown": ErrorWords(
        zh="没有名为“{value}”的基准测试：请使用 {choices} 之一。",
        ko="“{value}” 벤치마크는 없습니다. {choices} 중 하나를 사용하세요.",
    ),
    "page_missing": ErrorWords(
        "{value} 处没有页面：请在源码目录用 `python app.py` 启动。",
        "{value}에 페이지가 없습니다: 소스 폴더에서 `python app.py`로 시작하세요.",
    ),
    "picture_missing": ErrorWords(
        "{value} 处没有图片：请检查路径。", "{value}에 그림이 없습니다: 경로를 확인하세요."
    ),
    "picture_unreadable": ErrorWords(
        "{value} 打不开（{reason}）：请检查文件及其权限。",
        "{value}을(를) 열 수 없습니다({reason}): 파일과 권한을 확인하세요.",
    ),
    "picture_not_png": ErrorWords(
        "这个文件不是 PNG：请给保存时的 PNG 原件，不要其他格式的副本。",
        "이 파일은 PNG가 아닙니다: 다른 형식의 사본이 아니라 저장된 PNG를 주세요.",
    ),
    "picture_large": ErrorWords(
        "这幅图片太大（{value}）：上限是 {limit}。",
        "그림이 너무 큽니다({value}): 한도는 {limit}입니다.",
    ),
    "picture_damaged": ErrorWords(
        "这个 PNG 已损坏：{reason}。请从原处重新获取。",
        "이 PNG는 손상되었습니다: {reason}. 다시 받아 오세요.",
    ),
    "picture_text": ErrorWords(
        "这个 PNG 在“{value}”下的文字太多：没有读取。",
        "이 PNG의 “{value}” 글이 너무 많아 읽지 않았습니다.",
    ),
    "picture_without_recipe": ErrorWords(
        "这张图里没有配方：文字已被删除，或从未写入。",
        "이 그림에는 레시피가 없습니다: 글이 지워졌거나 아무것도 적히지 않았습니다.",
    ),
    "picture_record": ErrorWords(
        "这个 PNG 里的配方读不出来：{reason}。", "이 PNG의 레시피를 읽을 수 없습니다: {reason}."
    ),
    "picture_altered": ErrorWords(
        "这幅图片的像素与配方不符：它被修改过。",
        "이 그림의 픽셀이 레시피와 맞지 않습니다: 편집되었습니다.",
    ),
    "disk_low": ErrorWords(
        "{value} 的空间太少：需要 {wanted}，还剩 {free}。请腾出空间；什么都还没开始，已保存的也没有丢失。",
        "{value}에 공간이 너무 적습니다: {wanted}가 필요한데 {free}가 남았습니다. 공간을 마련하세요. "
        "아무것도 시작하지 않았고, 저장된 것은 잃지 않았습니다.",
    ),
    "disk_full": ErrorWords(
        "磁盘已满：{value} 没有空间。请腾出空间，已保存的都还在。",
        "디스크가 가득 찼습니다: {value}에 자리가 없습니다. 자리를 만드세요, 저장된 것은 그대로입니다.",
    ),
    "folder_read_only": ErrorWords(
        "{value} 不能写入：请允许写入或换一个文件夹。",
        "{value}에 쓸 수 없습니다: 쓰기를 허용하거나 다른 폴더를 고르세요.",
    ),
    "folder_refuses": ErrorWords(
        "{value} 写不进去：{reason}。请换一个文件夹。",
        "{value}에 쓸 수 없습니다: {reason}. 다른 폴더를 고르세요.",
    ),
    "picture_unknown": ErrorWords(
        "作品库里没有图片“{value}”：请检查编号。",
        "보관함에 “{value}” 그림이 없습니다: 번호를 확인하세요.",
    ),
    "picture_ambiguous": ErrorWords(
        "有多幅图片以“{value}”开头：请多写几位。",
        "“{value}”(으)로 시작하는 그림이 여럿입니다: 더 길게 쓰세요.",
    ),
    "picture_twice": ErrorWords(
        "作品库里已有编号为 {value} 的另一幅图片：保留它，这一幅不收。",
        "보관함에 번호 {value}인 다른 그림이 있습니다: 그 그림을 두고 이 그림은 넣지 않습니다.",
    ),
    "picture_lost": ErrorWords(
        "图片 {value} 的文件丢失或损坏：请按配方重新生成。",
        "그림 {value}의 파일이 없거나 손상되었습니다: 레시피로 다시 만드세요.",
    ),
    "library_locked": ErrorWords(
        "作品库 {value} 正被另一个程序使用：请稍后再试。",
        "보관함 {value}을(를) 다른 프로그램이 쓰고 있습니다: 잠시 뒤 다시 하세요.",
    ),
    "library_damaged": ErrorWords(
        "作品库的数据库 {value} 已损坏：请运行 `seedgrid library check`。",
        "보관함 데이터베이스 {value}이(가) 손상되었습니다: `seedgrid library check`를 실행하세요.",
    ),
    "library_newer": ErrorWords(
        "作品库 {value} 由更新的 SeedGrid 创建：请升级 SeedGrid。",
        "보관함 {value}은(는) 더 새로운 SeedGrid가 만들었습니다: SeedGrid를 업데이트하세요.",
    ),
    "library_rebuilt": ErrorWords(
        "作品库的数据库丢失或损坏，已从 {value} 幅图片重建。",
        "보관함 데이터베이스가 없거나 손상되어 그림 {value}장에서 다시 만들었습니다.",
    ),
    "library_mended": ErrorWords(
        "SeedGrid 曾在保存时被中断，没有丢失任何东西。收尾：{value} 处。",
        "SeedGrid가 저장 중에 멈췄지만 잃은 것은 없습니다. 정리한 곳: {value}.",
    ),
    "imported": ErrorWords(
        "来自 {tool}，能填的都填好了；不会得到同一幅图片：{reasons}。",
        "{tool}에서 가져와 가능한 만큼 채웠습니다. 같은 그림이 나오지는 않습니다: {reasons}.",
    ),
    "import_seed_missing": ErrorWords(
        "文件没有写明种子。",
        "파일에 시드가 없습니다.",
    ),
    "import_seed": ErrorWords(
        "种子 {value} 超过 32 位，{instead} 画出同样的噪声。",
        "시드 {value}은(는) 32비트를 넘습니다, {instead}이(가) 같은 노이즈를 그립니다.",
    ),
    "import_text": ErrorWords(
        "文字去掉了提示词容纳不了的 {value} 个字符。",
        "프롬프트가 담을 수 없는 글자 {value}개를 뺐습니다.",
    ),
    "import_number": ErrorWords(
        "{name} 的值 {value} 改为 {instead}。",
        "{name} 값 {value}을(를) {instead}(으)로 바꾸었습니다.",
    ),
    "import_size": ErrorWords(
        "尺寸 {value} 改为这个模型能画的 {instead}。",
        "크기 {value}을(를) 이 모델이 그릴 수 있는 {instead}(으)로 바꾸었습니다.",
    ),
    "import_sampler": ErrorWords(
        "这里没有采样器“{value}”，改用模型自带的。",
        "샘플러 “{value}”은(는) 여기 없어 모델의 것을 씁니다.",
    ),
    "import_schedule": ErrorWords(
        "{sampler} 没有噪声表“{value}”。",
        "{sampler}에는 노이즈 단계 “{value}”이(가) 없습니다.",
    ),
    "import_loras": ErrorWords(
        "LoRA 不会一起带来：{value}。",
        "LoRA는 함께 오지 않습니다: {value}.",
    ),
    "import_extras": ErrorWords(
        "这里没有这些设置：{value}。",
        "여기에는 이런 설정이 없습니다: {value}.",
    ),
    "import_model": ErrorWords(
        "模型“{value}”需在这里自行选择，如果你有的话。",
        "모델 “{value}”이(가) 있다면 여기서 직접 골라야 합니다.",
    ),
    "import_noise": ErrorWords(
        "{tool} 在别处产生噪声。",
        "{tool}은(는) 노이즈를 다른 곳에서 만듭니다.",
    ),
    "import_arithmetic": ErrorWords(
        "运算来自另一个程序。",
        "계산은 다른 프로그램의 것입니다.",
    ),
    "import_weights": ErrorWords(
        "{tool} 的加权记号在这里只是普通文字。",
        "{tool}의 가중치 기호는 여기서 보통 글자입니다.",
    ),
    "import_second_pass": ErrorWords(
        "它还经过第二遍处理（高清修复、精修或放大）。",
        "두 번째 단계를 거쳤습니다(고해상도 보정, 리파이너 또는 확대).",
    ),
    "import_first_picture": ErrorWords(
        "它由另一幅图片生成，不只来自噪声。",
        "노이즈만이 아니라 다른 그림에서 만들어졌습니다.",
    ),
    "import_batch": ErrorWords(
        "它是一次画出的 {value} 幅之一，文件没有写明是哪一幅。",
        "한 번에 그린 {value}개 중 하나인데 몇 번째인지 파일에 없습니다.",
    ),
    "picture_foreign": ErrorWords(
        "这幅图片里的设置读不出来：{reason}。",
        "이 그림의 설정을 읽을 수 없습니다: {reason}.",
    ),
    "bundle_large": ErrorWords(
        "压缩包 {value} 太大：最多 10,000 个文件，解开后最多 4 GB。",
        "묶음 {value}이(가) 너무 큽니다: 파일 10,000개, 풀어서 4 GB까지입니다.",
    ),
    "bundle_damaged": ErrorWords(
        "压缩包 {value} 读不出来：{reason}。",
        "묶음 {value}을(를) 읽을 수 없습니다: {reason}.",
    ),
    "link_invalid": ErrorWords(
        "这个链接不能用（{reason}）：“{value}”。",
        "이 링크는 쓸 수 없습니다({reason}): “{value}”.",
    ),
    "export_nothing": ErrorWords(
        "没有要导出的图片：请至少选一幅。",
        "내보낼 그림이 없습니다: 하나 이상 고르세요.",
    ),
    "export_loras": ErrorWords(
        "图片 {value} 用了 LoRA：还不能为它写脚本。",
        "그림 {value}은(는) LoRA로 만들어졌습니다: 아직 스크립트를 쓸 수 없습니다.",
    ),
    "sheet_suffix": ErrorWords(
        "目录页是 PNG 或 PDF：“{value}”应以 .png 或 .pdf 结尾。",
        "목록 시트는 PNG 또는 PDF입니다: “{value}”은(는) .png나 .pdf로 끝나야 합니다.",
    ),
    "import_nothing": ErrorWords(
        "这些文件里没有 PNG 也没有 ZIP：请拖入图片或包。",
        "이 파일들에는 PNG도 ZIP도 없습니다: 그림이나 묶음을 놓으세요.",
    ),
    "compiler_missing": ErrorWords(
        "这里没有编译去噪器所需的 C++ 编译器：请安装 g++，或不勾选“编译模型”。",
        "디노이저를 컴파일할 C++ 컴파일러가 없습니다: g++를 설치하거나 ‘컴파일’을 끄세요.",
    ),
    "compile_failed": ErrorWords(
        "无法编译去噪器：{reason}。请不勾选“编译模型”。",
        "디노이저를 컴파일하지 못했습니다: {reason}. ‘컴파일’을 끄세요.",
    ),
    "compile_device": ErrorWords(
        "编译后的去噪器只能在处理器上运行，不能在 {value} 上：请选 cpu。",
        "컴파일한 디노이저는 프로세서에서만 돌아가며 {value}에서는 안 됩니다: cpu를 고르세요.",
    ),
    "child_failed": ErrorWords(
        "使用其他指令限制的进程失败了：{reason}",
        "다른 명령어 제한을 쓴 프로세스가 실패했습니다: {reason}",
    ),
    "steps_few": ErrorWords(
        "{value} 在这个模型上至少需要 {limit} 步：请增加步数。",
        "{value}은(는) 이 모델에서 {limit}단계 이상 필요합니다: 단계를 늘리세요.",
    ),
    "import_words": ErrorWords(
        "图里没有找到提示词，请自行填写。",
        "그래프에서 글을 찾지 못했습니다, 직접 채우세요.",
    ),
    "lora_unsupported": ErrorWords(
        "这个版本不能混入 LoRA（{value}）：请用不含它的配方。",
        "이 판은 LoRA({value})를 섞을 수 없습니다: 없는 레시피를 쓰세요.",
    ),
    "export_models": ErrorWords(
        "包里只能放一个模型的文件夹，这里需要 {value}：请不要用 --with-model。",
        "묶음에는 모델 폴더 하나만 담을 수 있는데 {value}이(가) 필요합니다: --with-model을 빼세요.",
    ),
    "library_lost": ErrorWords(
        "有 {value} 幅图片的文件不见了；配方还在，可以重新画出来。",
        "그림 {value}개의 파일이 사라졌습니다. 레시피는 남아 있어 다시 그릴 수 있습니다.",
    ),
}
