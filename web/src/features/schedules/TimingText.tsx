import { useTranslation } from "react-i18next";
import { describeCron } from "./cronWords";
import { amountOf, onClocks, ownZone } from "./timing";

/** The timing of a schedule in words, with the cron expression beside them. */
export function TimingText(props: { cron: string | null; every: number | null; at: number | null; isPlain?: boolean }) {
  const { t, i18n } = useTranslation();
  if (props.cron !== null) {
    const description = describeCron(props.cron, i18n.language, (word, values) => t(`cron.${word}`, values ?? {}));
    return (
      <span>
        {description ? <span className="mr-2">{description}</span> : null}
        {description && props.isPlain ? null : (
          <code className={description ? "inline-block text-xs text-ink-faint" : ""}>{props.cron}</code>
        )}
      </span>
    );
  }
  if (props.every !== null) {
    const { amount, unit } = amountOf(props.every);
    return <span>{t(`cron.each.${unit}`, { count: Number(amount) })}</span>;
  }
  return props.at === null ? null : (
    <span>{t("cron.once", { when: onClocks(props.at, ownZone(), i18n.language) })}</span>
  );
}
