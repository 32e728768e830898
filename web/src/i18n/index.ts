/** Words of the interface, in the language of whoever looks. Texts of definitions are shown in it too, where they have it. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import type { Text } from "@/api/views";
import { browserStorage } from "@/browserStorage";
import { isolated } from "./isolated";

export const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];
const KEPT_AS = "pointsman.language";

type Words = Record<string, unknown>;

/** What a language is called in itself. */
export const LANGUAGE_NAMES: Record<Language, string> = { en: "English", de: "Deutsch" };

/** Each language is a file of its own, read when it is spoken. */
export const WORDS: Record<Language, () => Promise<{ default: Words }>> = {
  en: () => import("./en"),
  de: () => import("./de"),
};

/** What was chosen before, else the first language of the browser that we have. */
function preferred(): Language {
  const wishes = [browserStorage.read(KEPT_AS) ?? "", ...navigator.languages].map((wish) => wish.slice(0, 2));
  return wishes.map((wish) => LANGUAGES.find((one) => one === wish)).find((one) => one !== undefined) ?? "en";
}

export async function startLanguages(): Promise<void> {
  const language = preferred();
  await i18next.use(initReactI18next).init({
    resources: { [language]: { translation: (await WORDS[language]()).default } },
    lng: language,
    // Not for HTML, which nothing here is made of: for who reads the sentence.
    interpolation: { escapeValue: true, escape: isolated },
    returnNull: false,
  });
  document.documentElement.lang = i18next.language;
}

/** Fails where the language cannot be read: then all stays as it is. */
export async function speak(language: Language): Promise<void> {
  i18next.addResourceBundle(language, "translation", (await WORDS[language]()).default);
  browserStorage.write(KEPT_AS, language);
  document.documentElement.lang = language;
  await i18next.changeLanguage(language);
}

/** A text of a definition in the language of the page, else in English, else in whichever it has. */
export function textIn(text: Text | null | undefined, language: string, otherwise = ""): string {
  if (text === null || text === undefined) return otherwise;
  if (typeof text === "string") return text || otherwise;
  return text[language] ?? text.en ?? Object.values(text)[0] ?? otherwise;
}
