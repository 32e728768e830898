import { describe, expect, it } from "vitest";
import { textIn } from ".";
import fields from "./de/fields.json";
import given from "./given/de";

const FILES = import.meta.glob<Record<string, unknown>>("./{en,de}/**/*.json", { eager: true, import: "default" });
const wordsOf = (language: string): Record<string, unknown> =>
  Object.assign(
    {},
    ...Object.entries(FILES).flatMap(([path, words]) => (path.startsWith(`./${language}/`) ? [words] : [])),
  );
const [en, de] = [wordsOf("en"), wordsOf("de")];

/** Words that the table in README.md replaces by another. Text in {{}} or backticks is a name. */
const FORSAKEN =
  /\b(Workflows?|Runs?|Kanten?|Gates?|Revision(en)?|Ids?|IDs?|sichern|gesichert|[Ss]cheiter\w*|gescheitert|Tokens|Sessions?|Sitzung(en)?|Tools?|Secrets?|Users?|Schirm|[Dd]u|[Dd]ein\w*)\b/u;

function texts(words: object): string[] {
  return Object.values(words).flatMap((word) => (typeof word === "string" ? [word] : texts(word as object)));
}

function names(words: object, before = ""): string[] {
  return Object.entries(words).flatMap(([name, word]) =>
    typeof word === "string" ? [`${before}${name}`] : names(word as object, `${before}${name}.`),
  );
}

/** Return the keys that no source contains, neither whole nor composed, as in `status.${status}`. */
function unused(keys: Iterable<string>, text: string): string[] {
  const whole = new Set([...text.matchAll(/"([\w.]+)"/g)].map((found) => found[1]));
  const made = [...text.matchAll(/`(\w+(?:\.\w*)+)\$\{[^`]*\}([\w.]*)`/g)];
  return [...keys].filter(
    (key) => !whole.has(key) && !made.some(([, start = "", end = ""]) => key.startsWith(start) && key.endsWith(end)),
  );
}

describe("texts of the interface", () => {
  it("has each top-level key in one file", () => {
    const parts = Object.values(FILES).flatMap((words) => Object.keys(words));
    expect(parts.length).toBe(new Set(parts).size * 2);
  });

  it("has all texts in both languages", () => {
    expect(names(de)).toEqual(names(en));
  });

  it("has a text for every key in the sources, and no unused texts", () => {
    const sources = import.meta.glob<string>(["../**/*.{ts,tsx}", "!../**/*.test.*", "!../testing/**"], {
      eager: true,
      query: "?raw",
      import: "default",
    });
    const known = new Set(names(en).map((name) => name.replace(/_(one|other)$/, "")));
    const called = Object.values(sources).flatMap((text) => [...text.matchAll(/\bt\("([\w.]+)"/g)]);
    expect(called.length).toBeGreaterThan(100);
    expect(called.map((found) => found[1]).filter((name) => !known.has(name as string))).toEqual([]);
    expect(unused(known, Object.values(sources).join("\n"))).toEqual([]);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a source as text
    expect(unused(["status.done", "status.done.twice", "keys.title"], "t(`status.${one}`)")).toEqual(["keys.title"]);
  });

  it("uses the texts that load with the pages of a feature only there", () => {
    const sources = import.meta.glob<string>(["../**/*.{ts,tsx}", "!../**/*.test.*"], {
      eager: true,
      query: "?raw",
      import: "default",
    });
    const lazy = Object.entries(FILES).filter(([path]) => path.startsWith("./en/pages/"));
    expect(lazy.length).toBeGreaterThan(5);
    for (const [file, words] of lazy) {
      const feature = file.slice("./en/pages/".length, -".json".length);
      const key = new RegExp(`["\`](${Object.keys(words).join("|")})\\.\\w`);
      const others = Object.entries(sources).filter(([path]) => !path.startsWith(`../features/${feature}/`));
      expect(others.filter(([, text]) => key.test(text)).map(([path]) => path)).toEqual([]);
      // Components of the feature appear on no other page.
      const component = new RegExp(`from "(@/features|\\.\\.)/${feature}/[A-Z]`);
      const pages = others.filter(([path]) => !path.endsWith("/router.tsx"));
      expect(pages.filter(([, text]) => component.test(text)).map(([path]) => path)).toEqual([]);
    }
  });

  it("uses one German word for one thing", () => {
    const said = [...texts(de), ...texts(given)].map((one) => one.replaceAll(/\{\{.*?\}\}|`.*?`/g, ""));
    expect(said.length).toBeGreaterThan(1500);
    expect(said.filter((one) => FORSAKEN.test(one))).toEqual([]);
    expect(said.filter((one) => /\p{L}…/u.test(one))).toEqual([]);
  });

  it("has plural forms in both languages", () => {
    const counted = (words: object) => names(words).filter((name) => name.endsWith("_one"));
    const all = new Set(names(de));
    expect(counted(de).filter((name) => !all.has(name.replace(/_one$/, "_other")))).toEqual([]);
  });

  it("uses every placeholder in both languages", () => {
    const filled = (word: string) => [...new Set(word.match(/\{\{\w+\}\}/g) ?? [])].sort().join();
    const german = texts(de);
    const differing = texts(en).filter((one, at) => filled(one) !== filled(german[at] ?? ""));
    expect(differing.filter((one) => !/\{\{count\}\}/.test(one))).toEqual([]);
  });

  it("names fields in German, not by their English names", () => {
    const apart = (name: string) => name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
    const same = Object.entries(fields.field).filter(
      ([name, word]) => /[A-Z]/.test(name) && word.toLowerCase() === apart(name),
    );
    expect(same).toEqual([]);
  });

  it("shows texts of definitions in the language of the page, else in English, else in any language", () => {
    expect(textIn({ en: "Write", de: "Schreiben" }, "de")).toBe("Schreiben");
    expect(textIn({ en: "Write" }, "de")).toBe("Write");
    expect(textIn({ fr: "Écrire" }, "de")).toBe("Écrire");
    expect(textIn("Write", "de")).toBe("Write");
    expect(textIn(null, "de", "node-1")).toBe("node-1");
  });
});
