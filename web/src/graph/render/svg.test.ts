// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { pictureOf } from "@/graph/model/picture";
import { untranslated } from "@/testing/graphs";
import { escaped, type Ink, renderSvg } from "./svg";

const INK: Ink = {
  surface: "#fff",
  sunken: "#eee",
  strong: "#bbb",
  ink: "#111",
  faint: "#666",
  soft: "#eef",
  failed: "#b00",
};

function parsed(text: string): Document {
  const found = new DOMParser().parseFromString(text, "image/svg+xml");
  expect(found.querySelector("parsererror")).toBeNull();
  return found;
}

describe("the drawing", () => {
  it("contains every box, arrow and frame, with labels as text", () => {
    const picture = pictureOf(
      {
        id: "w",
        nodes: [
          { id: "each", type: "parallel" },
          { id: "a", type: "agent", name: "Write" },
          { id: "j", type: "join" },
        ],
        edges: [
          { source: "each", target: "a", condition: { type: "label", label: "go" } },
          { source: "a", target: "j" },
        ],
        graph: { regions: [{ id: "each", kind: "parallel", members: ["a"], parent: null }], implied: [] },
      },
      "en",
      untranslated,
    );
    const drawing = renderSvg(picture, INK, "News", (type) => type.toUpperCase());
    const svg = parsed(drawing.text);
    expect(svg.querySelectorAll("g").length).toBe(3);
    expect(svg.querySelectorAll("path[marker-end]").length).toBe(2);
    expect(svg.querySelectorAll("rect[stroke-dasharray]").length).toBe(1);
    const words = [...svg.querySelectorAll("text")].map((one) => one.textContent);
    expect(words).toEqual(expect.arrayContaining(["Write", "AGENT", "go", "PARALLEL"]));
    expect(drawing.width).toBeGreaterThan(3 * 208);
  });

  it("escapes untrusted names", () => {
    const name = `</text><script>alert("x")</script>\u0000\u0008\uD800 & 'so' on and on and on`;
    const picture = pictureOf({ id: "w", nodes: [{ id: "a", type: "agent", name }], edges: [] }, "en", untranslated);
    const { text } = renderSvg(picture, INK, name, (type) => type);
    expect(text).not.toContain("<script");
    expect(text).not.toContain("\u0000");
    expect(parsed(text).querySelectorAll("script").length).toBe(0);
    expect(escaped("a\u0000b\uD800<")).toBe("ab&#60;");
  });

  it("has a size even if the picture is empty", () => {
    const { width, height } = renderSvg({ boxes: [], arrows: [] }, INK, "", (type) => type);
    expect(width).toBeGreaterThan(0);
    expect(height).toBeGreaterThan(0);
  });
});
