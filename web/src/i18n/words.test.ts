import { describe, expect, it } from "vitest";
import { textIn } from ".";
import de from "./de.json";
import en from "./en.json";

function names(words: object, before = ""): string[] {
  return Object.entries(words).flatMap(([name, word]) =>
    typeof word === "string" ? [`${before}${name}`] : names(word as object, `${before}${name}.`),
  );
}

describe("words", () => {
  it("are there in both languages", () => {
    expect(names(de)).toEqual(names(en));
  });

  it("of definitions are shown in the language of the page, else in English, else as they are", () => {
    expect(textIn({ en: "Write", de: "Schreiben" }, "de")).toBe("Schreiben");
    expect(textIn({ en: "Write" }, "de")).toBe("Write");
    expect(textIn({ fr: "Écrire" }, "de")).toBe("Écrire");
    expect(textIn("Write", "de")).toBe("Write");
    expect(textIn(null, "de", "node-1")).toBe("node-1");
  });
});
