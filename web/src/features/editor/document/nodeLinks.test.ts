import { describe, expect, it } from "vitest";
import { hashTo, nodeLinkIn } from "./nodeLinks";

describe("node links", () => {
  it("survive formatting and parsing for any node id", () => {
    for (const node of ["write", "a b", "x/y&field=1", "Prüfung", "100%"])
      expect(nodeLinkIn(`#${hashTo(node, "/config/prompt")}`)).toEqual({ node, field: "/config/prompt" });
  });

  it("may name the node alone, or nothing", () => {
    expect(nodeLinkIn("node=write")).toEqual({ node: "write", field: "" });
    for (const hash of ["", "#", "#top", "field=/config"]) expect(nodeLinkIn(hash)).toBeNull();
  });
});
