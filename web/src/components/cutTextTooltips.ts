/** Give each truncated text a tooltip with the whole text, unless it has a title already. */
const CUT_SELECTOR = ".truncate, [class*='line-clamp-']";
const MARK = "cut";

export function addTooltipsToCutText(page: Document): void {
  page.addEventListener("pointerover", (event) => {
    const one = event.target instanceof Element ? event.target.closest<HTMLElement>(CUT_SELECTOR) : null;
    if (one === null) return;
    if (one.dataset[MARK] === undefined && one.closest("[title]") !== null) return;
    const isCut = one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight + 1;
    if (isCut) {
      one.title = one.textContent?.trim() ?? "";
      one.dataset[MARK] = "";
    } else if (one.dataset[MARK] !== undefined) {
      one.removeAttribute("title");
      delete one.dataset[MARK];
    }
  });
}
