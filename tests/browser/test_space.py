"""The page as a Space serves it: the same file, each visitor with pictures of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect
from serving import serve, serve_space
from steps import (
    SLOW_MS,
    SOON_MS,
    OpenPage,
    cell,
    generate,
    ids,
    refine,
    seeds_shown,
    set_steps,
    wait_for_turns,
)


@pytest.fixture(scope="module")
def space(browser: Browser) -> Iterator[str]:  # noqa: ARG001 (no browser, no page)
    """A real model takes its time, more so on a busy machine."""
    expect.set_options(timeout=SLOW_MS)
    with serve_space() as address:
        yield address
    expect.set_options(timeout=SOON_MS)


@pytest.mark.sweep
def test_two_visitors_of_a_space_see_their_own_pictures(open_page: OpenPage, space: str) -> None:
    """Both paint and refine on one Space; neither stage nor library shows the other's."""
    mine, yours = open_page(at=space), open_page(at=space)
    for page in (mine, yours):
        page.set_default_timeout(SLOW_MS)
        set_steps(page, 2)
    first, second = generate(mine), generate(yours)
    assert not set(first) & set(second)
    assert seeds_shown(mine) == seeds_shown(yours) == ["0", "1", "2", "3"]
    refine(yours, 1)
    assert ids(mine) == first
    mine.click("#sg-library-open")
    expect(mine.locator("#sg-library .sg-item")).to_have_count(1)  # a work is one, with a count
    for page in (mine, yours):
        page.close()  # before its server


@pytest.mark.sweep
def test_a_space_tells_nothing_of_its_machine(open_page: OpenPage, space: str) -> None:
    """Only installed models are offered, by name; no folder can be asked for."""
    page = open_page(at=space)
    page.set_default_timeout(SLOW_MS)
    set_steps(page, 2)
    model = page.locator("#sg-model select")
    expect(model).to_have_value("bundled")
    model.evaluate("(list) => { list.firstElementChild.value = '/etc'; list.value = '/etc'; }")
    page.click("#sg-generate")
    wait_for_turns(page)
    expect(page.locator("#sg-model")).to_contain_text("is not offered here")
    page.close()  # before its server


@pytest.mark.sweep
def test_a_browser_that_keeps_no_cookie_sees_its_pictures_all_the_same(
    open_page: OpenPage, tmp_path: Path
) -> None:
    """A Space stands in another site's frame, where some browsers keep none."""
    with serve(tmp_path / "public", public={}) as address:
        page = open_page(at=address)

        def without_cookie(route: Route) -> None:
            answer = route.fetch()
            page.context.clear_cookies()  # which the fetch itself kept
            kept = {name: told for name, told in answer.headers.items() if name != "set-cookie"}
            route.fulfill(response=answer, headers=kept)

        page.context.route(address, without_cookie)
        page.reload()
        generate(page)
        assert page.context.cookies() == []
        cell(page, 0).click()
        link = page.locator("#sg-export a").first.get_attribute("href")
        assert page.request.get(f"{address}{link}").status == 200
        assert page.request.get(f"{address}{link}".partition("?")[0]).status == 404
        page.close()  # before its server
