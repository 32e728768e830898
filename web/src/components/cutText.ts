/** What is cut says all of itself to who points at it, wherever it stands: a title, where there is none that is meant. */
const CUT = ".truncate, [class*='line-clamp-']";
const MARK = "cut";

export function tellCutText(page: Document): void {
  page.addEventListener("pointerover", (event) => {
    const one = event.target instanceof Element ? event.target.closest<HTMLElement>(CUT) : null;
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
