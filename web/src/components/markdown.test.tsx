import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import Markdown, { blocksOf } from "./Markdown";

afterEach(cleanup);

const HOSTILE = `# Hi <img src=x onerror="alert(1)">

[a](javascript:alert(1)) ![p](https://example.org/track.png) <script>alert(1)</script>

\`\`\`js
let a = "<b>";
\`\`\``;

describe("Markdown", () => {
  it("renders elements without scripts and remote resources", () => {
    const { container } = render(<Markdown text={HOSTILE} />);
    expect(container.querySelectorAll("script, img, iframe, style").length).toBe(0);
    expect(container.querySelector("h1")?.textContent).toBe("Hi ");
    const links = [...container.querySelectorAll("a")].map((link) => link.getAttribute("href"));
    expect(links).toEqual(["", "https://example.org/track.png"]);
    expect(container.querySelector("pre")?.textContent).toBe('let a = "<b>";\n');
  });

  it("splits text into blocks without splitting a fence, a list or a table", () => {
    expect(blocksOf("a\n\nb")).toEqual(["a\n", "b"]);
    expect(blocksOf("```\na\n\nb\n```\n\nc")).toEqual(["```\na\n\nb\n```\n", "c"]);
    expect(blocksOf("- a\n\n- b\n\n  c").length).toBe(1);
    expect(blocksOf("```\nopen\n\nstill").length).toBe(1);
  });
});
