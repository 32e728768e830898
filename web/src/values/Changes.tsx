import { useTranslation } from "react-i18next";
import { brief, CHANGES_MAX, pathText, type ValueChange } from "./changes";
import { TextChange } from "./TextChange";

/** Changed values with before and after, distinguishable without colour. */
export function Changes({ changes }: { changes: readonly ValueChange[] }) {
  const { t } = useTranslation();
  if (changes.length === 0) return <p className="text-ink-faint">{t("changes.none")}</p>;
  return (
    <>
      <ul className="space-y-1.5 text-sm">
        {changes.map((change) => (
          <li key={pathText(change.path)} className="rounded-md border border-line p-2">
            <p className="font-mono text-xs break-all text-ink-soft">{pathText(change.path) || t("changes.whole")}</p>
            {typeof change.before === "string" && typeof change.after === "string" ? (
              <TextChange before={change.before} after={change.after} />
            ) : (
              <Sides change={change} />
            )}
          </li>
        ))}
      </ul>
      {changes.length >= CHANGES_MAX ? <p className="mt-1 text-ink-faint">{t("changes.many")}</p> : null}
    </>
  );
}

function Sides({ change }: { change: ValueChange }) {
  const { t } = useTranslation();
  return (
    <>
      {change.before === undefined ? null : (
        <p className="break-words whitespace-pre-wrap text-failed">
          <span aria-hidden>− </span>
          <span className="sr-only">{t("changes.before")} </span>
          <del className="no-underline">{brief(change.before, 2_000)}</del>
        </p>
      )}
      {change.after === undefined ? null : (
        <p className="break-words whitespace-pre-wrap text-done">
          <span aria-hidden>+ </span>
          <span className="sr-only">{t("changes.after")} </span>
          <ins className="no-underline">{brief(change.after, 2_000)}</ins>
        </p>
      )}
    </>
  );
}
