/** What went wrong: in the language of the page where its code has words, and exactly, as the server says it. */
import { useTranslation } from "react-i18next";
import { useServerTexts } from "@/i18n/given";
import { CodeText } from "./CodeText";

export function ErrorDetail(props: { code: string; message: string; hint?: string | null | undefined; look?: string }) {
  const { code, message, look = "" } = props;
  const meaning = useServerTexts().meaning(code);
  return (
    <>
      {meaning ? (
        <>
          <span className={`block break-words ${look}`}>
            <CodeText text={meaning} />
          </span>
          <InEnglish text={message} look="text-sm text-ink-soft" />
        </>
      ) : (
        <InEnglish text={message} look={look} />
      )}
      <InEnglish text={props.hint ?? ""} look="text-sm text-ink-soft" />
    </>
  );
}

/** A text of the server, which is read out in English whatever the language of the page. */
export function InEnglish({ text, look }: { text: string; look: string }) {
  const { i18n } = useTranslation();
  if (!text) return null;
  return (
    <span {...(i18n.language === "en" ? {} : { lang: "en" })} className={`block break-words ${look}`}>
      {text}
    </span>
  );
}
