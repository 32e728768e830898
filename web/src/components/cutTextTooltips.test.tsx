import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { addTooltipsToCutText } from "./cutTextTooltips";

/** This page has no layout: give the element the widths that a browser would give it. */
function sized(one: HTMLElement, text: number, room: number): void {
  Object.defineProperties(one, {
    scrollWidth: { value: text, configurable: true },
    clientWidth: { value: room, configurable: true },
  });
}

it("shows truncated text in full as the title under the pointer, and only while it is truncated", async () => {
  render(
    <>
      <span className="truncate">a long name</span>
      <p>beside it</p>
    </>,
  );
  addTooltipsToCutText(document);
  const user = userEvent.setup();
  const [cut, beside] = [screen.getByText("a long name"), screen.getByText("beside it")];
  sized(cut, 200, 100);
  expect(cut.getAttribute("title")).toBeNull();
  await user.hover(cut);
  expect(cut.getAttribute("title")).toBe("a long name");
  await user.hover(beside);
  expect(beside.getAttribute("title")).toBeNull();
  sized(cut, 50, 100);
  await user.hover(cut);
  expect(cut.getAttribute("title")).toBeNull();
});

it("keeps a title that the page gave", async () => {
  render(
    <div title="meant">
      <span className="line-clamp-2">a long name</span>
    </div>,
  );
  addTooltipsToCutText(document);
  const cut = screen.getByText("a long name");
  sized(cut, 200, 100);
  await userEvent.setup().hover(cut);
  expect(cut.getAttribute("title")).toBeNull();
});
