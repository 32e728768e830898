import { createInstance } from "i18next";
import { beforeAll, describe, expect, it } from "vitest";
import de from "@/i18n/de";
import { questionOf } from "./question";

const words = createInstance();
beforeAll(() =>
  words.init({ lng: "de", resources: { de: { translation: de } }, interpolation: { escapeValue: false } }),
);
const asked = (message: string) => questionOf({ message }, "Nachsehen", "de", words.t);

describe("question of a gate", () => {
  it("translates the server's default questions", () => {
    expect(asked("May 'look' start?")).toBe("Darf „Nachsehen“ beginnen?");
    expect(asked("May 'look' call 'find', 'write'?")).toBe("Darf „Nachsehen“ find, write aufrufen?");
    expect(asked("'look' calls 'find': what came of it?")).toBe(
      "„Nachsehen“ ruft find auf. Geben Sie die Ergebnisse ein.",
    );
  });

  it("uses the workflow's text, or the name of the node if there is none", () => {
    expect(asked("May I look it up?")).toBe("May I look it up?");
    expect(asked("")).toBe("Nachsehen");
    const messages = { en: "Send it?", de: "Soll er hinaus?" };
    expect(questionOf({ message: "Send it?", messages }, "x", "de", words.t)).toBe("Soll er hinaus?");
  });
});
