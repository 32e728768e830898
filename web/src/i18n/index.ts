/** Languages of the interface. Texts of definitions are shown in the same language if they have it. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import type { Text } from "@/api/views";
import { browserStorage } from "@/browserStorage";
import { isolated } from "./isolated";

export const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];
const STORAGE_KEY = "pointsman.language";

type Words = Record<string, unknown>;

/** The name of each language in that language. */
export const LANGUAGE_NAMES: Record<Language, string> = { en: "English", de: "Deutsch" };

/** Each language is a separate file, loaded on demand. */
export const WORDS: Record<Language, () => Promise<{ default: Words }>> = {
  en: () => import("./en"),
  de: () => import("./de"),
};

/** Texts of features that load with the pages of the feature: most visits do not need them. */
const PAGE_WORDS = import.meta.glob<Words>("./*/pages/*.json", { import: "default" });
const loadedFeatures = new Set<string>();

/** Load the texts of a feature that has a file under `pages`. */
export async function loadWords(feature: string, given?: Language): Promise<void> {
  await started;
  const language = given ?? i18next.language;
  const read = PAGE_WORDS[`./${language}/pages/${feature}.json`];
  if (!read) throw new Error(`i18n/${language}/pages has no file for ${feature}`);
  i18next.addResourceBundle(language, "translation", await read());
  loadedFeatures.add(feature);
}

/** The stored language, otherwise the browser's first language that the app supports. */
function preferred(): Language {
  const candidates = [browserStorage.read(STORAGE_KEY) ?? "", ...navigator.languages].map((candidate) =>
    candidate.slice(0, 2),
  );
  return (
    candidates.map((candidate) => LANGUAGES.find((one) => one === candidate)).find((one) => one !== undefined) ?? "en"
  );
}

let started: Promise<void> = Promise.resolve();

export function startLanguages(): Promise<void> {
  started = start();
  return started;
}

async function start(): Promise<void> {
  const language = preferred();
  await i18next.use(initReactI18next).init({
    resources: { [language]: { translation: (await WORDS[language]()).default } },
    lng: language,
    // React escapes HTML; the placeholder values are isolated for bidirectional text instead.
    interpolation: { escapeValue: true, escape: isolated },
    returnNull: false,
  });
  document.documentElement.lang = i18next.language;
}

/** Switch the language. Throws if its texts cannot be loaded; the language then stays as it is. */
export async function switchLanguage(language: Language): Promise<void> {
  i18next.addResourceBundle(language, "translation", (await WORDS[language]()).default);
  await Promise.all([...loadedFeatures].map((feature) => loadWords(feature, language)));
  browserStorage.write(STORAGE_KEY, language);
  document.documentElement.lang = language;
  await i18next.changeLanguage(language);
}

/** A text of a definition in the language of the page, else in English, else in any language it has. */
export function textIn(text: Text | null | undefined, language: string, fallback = ""): string {
  if (text === null || text === undefined) return fallback;
  if (typeof text === "string") return text || fallback;
  return text[language] ?? text.en ?? Object.values(text)[0] ?? fallback;
}
