"""The words of the library page; `texts.py` puts all words together."""

from __future__ import annotations

from typing import Final

from seedgrid.web.locales.words import Words

LIBRARY_TEXTS: Final[dict[str, Words]] = {
    # The library
    "library_title": Words("Library", "作品库", "보관함"),
    "library_closed": Words(
        "Everything you make is kept here. Open it",
        "你创作的一切都保存在这里，点击打开",
        "만든 모든 것이 여기에 있습니다. 열기",
    ),
    "library_search": Words("Search the prompts", "搜索提示词", "프롬프트 검색"),
    "library_favourites": Words("Favourites", "收藏", "즐겨찾기"),
    "library_trash": Words("Trash", "回收站", "휴지통"),
    "library_filter": Words("Filter", "筛选", "필터"),
    "library_seed": Words("Seed", "种子", "시드"),
    "library_model": Words("Model", "模型", "모델"),
    "library_since": Words("From", "从", "부터"),
    "library_until": Words("To", "到", "까지"),
    "library_go": Words(
        "Open {words}, seed {seed}", "打开 {words}，种子 {seed}", "{words}, 시드 {seed} 열기"
    ),
    "library_remove": Words("Throw away", "丢弃", "버리기"),
    "library_restore": Words("Take back", "恢复", "되돌리기"),
    "library_removed": Words("In the trash", "已放入回收站", "휴지통에 넣었습니다"),
    "library_undo": Words("Undo", "撤销", "실행 취소"),
    "library_empty_trash": Words("Empty the trash", "清空回收站", "휴지통 비우기"),
    "library_empty_sure": Words(
        "Delete everything in the trash for good?",
        "彻底删除回收站里的所有内容？",
        "휴지통의 모든 것을 완전히 삭제할까요?",
    ),
    "library_nothing": Words(
        "Everything you make is kept here.",
        "你创作的一切都会保存在这里。",
        "만든 모든 것이 여기에 보관됩니다.",
    ),
    "library_not_found": Words("Nothing like that here", "没有找到", "찾지 못했습니다"),
    "drop_label": Words(
        "Drop pictures or ZIP bundles, of SeedGrid or other tools",
        "拖入图片或 ZIP 包，SeedGrid 或其他工具的都可以",
        "그림이나 ZIP 묶음을 놓으세요. SeedGrid나 다른 도구의 것 모두 됩니다",
    ),
    "drop_here": Words("Drop to open", "松手即可打开", "놓으면 열립니다"),
    "status_taken_in": Words(
        "Taken into the library: {number}", "已收入作品库：{number}", "보관함에 넣음: {number}"
    ),
    "note_placeholder": Words("Add a note", "添加备注", "메모 추가"),
    "copy_link": Words("Copy link", "复制链接", "링크 복사"),
    "link_copied": Words("Copied", "已复制", "복사됨"),
    "export_title": Words("Export", "导出", "내보내기"),
    "export_round": Words("This round", "这一轮", "이 라운드"),
    "export_work": Words("The whole work", "整件作品", "작품 전체"),
    "export_png": Words("Contact sheet", "缩略图总览", "밀착 인화"),
    "export_pdf": Words("Sheet as PDF", "总览 PDF", "밀착 인화 PDF"),
    "export_zip": Words("Bundle that reproduces it", "可复现的打包", "재현 묶음"),
    "export_py": Words("Script for diffusers", "diffusers 脚本", "diffusers 스크립트"),
}
