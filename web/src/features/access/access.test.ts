import { describe, expect, it } from "vitest";
import { browserOf, namesIn } from "./access";

describe("names in a field", () => {
  it("are separated by commas and distinct, without empty ones", () => {
    expect(namesIn(" desk, night watch,,desk , ")).toEqual(["desk", "night watch"]);
    expect(namesIn("  ")).toEqual([]);
  });
});

describe("browser", () => {
  it("is shown by its common name", () => {
    expect(browserOf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36")).toBe(
      "Chrome, Linux",
    );
    expect(browserOf("Mozilla/5.0 (iPhone; CPU iPhone OS 18 like Mac OS X) Version/18 Safari/604.1")).toBe(
      "Safari, iPhone",
    );
    expect(browserOf("curl/8")).toBe("curl/8");
  });
});
