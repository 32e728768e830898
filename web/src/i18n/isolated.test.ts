// @vitest-environment happy-dom
import i18next from "i18next";
import { beforeAll, describe, expect, it } from "vitest";
import { startLanguages, switchLanguage } from ".";
import { isolated } from "./isolated";

describe("name within a sentence", () => {
  beforeAll(async () => {
    await startLanguages();
    await switchLanguage("en");
  });

  it("is unchanged if it is harmless", () => {
    for (const name of ["letter", "Brief & <b>Gruß</b>", "naïve 👩‍🔬", "a $t(editor.save) {{name}}"])
      expect(i18next.t("editor.deleteSure", { name })).toBe(`Delete ${name}?`);
    expect(i18next.t("editor.unsaved", { count: 3 })).toBe("3 unsaved changes");
  });

  it("cannot reorder the sentence, break the line, hide text, or be too long", () => {
    expect(isolated("harmless\u202Eexe.\u2069\u200B\uFEFF")).toBe("harmlessexe.");
    expect(isolated("שלום")).toBe("\u2068שלום\u2069");
    expect(isolated("a\n\n\tb\u2028c\u0000")).toBe("a b c ");
    const long = isolated(`${"👩".repeat(5_000)}end`);
    expect([...long].length).toBeLessThan(260);
    expect(long.endsWith("👩end")).toBe(true);
    expect(() => encodeURIComponent(long), "no letter is cut in two").not.toThrow();
  });
});
