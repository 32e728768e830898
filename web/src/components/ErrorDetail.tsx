/** An error: a translation if its code has one, followed by the server's message. */
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
          <ServerText text={message} look="text-sm text-ink-soft" />
        </>
      ) : (
        <ServerText text={message} look={look} />
      )}
      <ServerText text={props.hint ?? ""} look="text-sm text-ink-soft" />
    </>
  );
}

/** A text of the server. It is in English, so it is marked as English for screen readers. */
export function ServerText({ text, look }: { text: string; look: string }) {
  const { i18n } = useTranslation();
  if (!text) return null;
  return (
    <span {...(i18n.language === "en" ? {} : { lang: "en" })} className={`block break-words ${look}`}>
      {text}
    </span>
  );
}
