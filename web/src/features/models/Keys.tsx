/** Provider keys: availability, today's usage, and the last error of each key. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";
import { PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { Meter } from "@/components/Meter";
import { QueryResult } from "@/components/QueryResult";
import { ago, moment } from "@/components/times";
import { type KeyProvider, modelKeys, type ProviderKey, part, type Share, shares } from "./keys";

const LOOKS = {
  free: "good",
  pausing: "plain",
  busy: "accent",
  cooling: "careful",
  refused: "bad",
  spent: "bad",
} as const;

export function Keys() {
  const { t } = useTranslation();
  const known = useQuery(modelKeys());
  if (known.data?.providers.length === 0) return null;
  return (
    <PageSection title={t("models.live.title")} about={t("models.live.about")}>
      <QueryResult query={known}>
        {(reply) => (
          <>
            {reply.shared ? <p className="-mt-1 mb-3 max-w-2xl text-ink-soft">{t("models.live.processes")}</p> : null}
            {reply.providers.map((one) => (
              <Pool key={one.name} of={one} at={reply.at} />
            ))}
          </>
        )}
      </QueryResult>
    </PageSection>
  );
}

function Pool({ of, at }: { of: KeyProvider; at: number }) {
  const { t } = useTranslation();
  const terms = [
    of.keys.length > 1 ? t(`models.live.strategy.${of.strategy}`) : "",
    of.interval > 0 ? t("models.interval", { seconds: of.interval }) : "",
    of.keyInterval > 0 ? t("models.live.keyInterval", { seconds: of.keyInterval }) : "",
    of.concurrency === null ? "" : t("models.live.concurrency", { count: of.concurrency }),
    of.shared ? t("models.live.shared") : "",
  ].filter(Boolean);
  return (
    <section className="mb-6" aria-label={t("models.live.of", { name: of.name })}>
      <h3 className="mb-1.5 flex flex-wrap items-baseline gap-x-3">
        <span className="font-mono font-medium">{of.name}</span>
        <span className="text-sm text-ink-soft">{terms.join(" · ")}</span>
        {of.waiting > 0 ? <Chip look="careful">{t("models.live.waiting", { count: of.waiting })}</Chip> : null}
      </h3>
      {of.missing ? <p className="text-failed wrap-anywhere">{of.missing}</p> : null}
      <Listing
        name={t("models.live.of", { name: of.name })}
        entries={of.keys}
        keyOf={(one) => one.id}
        columns={[
          { name: t("models.live.key"), cell: (one) => <KeyName of={one} /> },
          { name: t("models.live.state"), cell: (one) => <Condition of={one} at={at} /> },
          { name: t("models.live.open"), isNumber: true, cell: (one) => one.open },
          { name: t("models.live.today"), cell: (one) => <Today of={one} /> },
          { name: t("models.live.used"), cell: (one) => <Ago at={one.usedAt} now={at} /> },
          {
            name: t("models.live.failed"),
            cell: (one) =>
              one.failed === null ? null : (
                <span>
                  <code className="text-xs wrap-anywhere">{one.failed}</code>{" "}
                  <span className="text-ink-faint">
                    <Ago at={one.failedAt} now={at} />
                  </span>
                </span>
              ),
          },
        ]}
      />
    </section>
  );
}

function KeyName({ of }: { of: ProviderKey }) {
  const { t } = useTranslation();
  return (
    <span>
      <span className="font-mono">{of.id}</span>
      <span className="block text-xs font-normal text-ink-faint wrap-anywhere">
        {of.name ?? t("models.live.unnamed")}
      </span>
    </span>
  );
}

function Condition({ of, at }: { of: ProviderKey; at: number }) {
  const { t, i18n } = useTranslation();
  const hint = of.condition === "spent" && of.until === null ? "spentHere" : of.condition;
  return (
    <span>
      <Chip look={LOOKS[of.condition]}>{t(`models.live.condition.${of.condition}`)}</Chip>
      {of.until !== null && of.condition !== "pausing" ? (
        <span className="ml-1.5 text-sm whitespace-nowrap" title={moment(of.until, i18n.language)}>
          {t("models.live.until", { when: ago(of.until, i18n.language, at) })}
        </span>
      ) : null}
      {hint === "spent" || hint === "spentHere" || hint === "refused" || hint === "cooling" ? (
        <span className="block max-w-64 text-xs text-ink-soft">{t(`models.live.hint.${hint}`)}</span>
      ) : null}
    </span>
  );
}

function Today({ of }: { of: ProviderKey }) {
  const { t } = useTranslation();
  const bounded = shares(of);
  if (bounded.length === 0)
    return (
      <span className="tabular-nums">
        <Amount measure="calls" value={of.today.calls} />, <Amount measure="tokens" value={of.today.tokens} />
        <span className="block text-xs text-ink-faint">{t("models.live.unlimited")}</span>
      </span>
    );
  return (
    <span className="block min-w-36 space-y-1">
      {bounded.map((one) => (
        <Bounded key={one.measure} of={one} />
      ))}
    </span>
  );
}

function Bounded({ of }: { of: Share }) {
  const { t } = useTranslation();
  const { measure, used, most } = of;
  const label = t("models.live.usedOf", { used: useNumber(measure, used), most: useAmount(measure, most) });
  return (
    <span className="block">
      <span className="text-sm tabular-nums">{label}</span>
      <Meter part={part(of)} />
    </span>
  );
}

function Amount({ measure, value }: { measure: Share["measure"]; value: number }) {
  return <>{useAmount(measure, value)}</>;
}

function useAmount(measure: Share["measure"], value: number): string {
  const { t } = useTranslation();
  const number = useNumber(measure, value);
  return measure === "costUsd" ? number : t(`models.live.amount.${measure}`, { count: value, number });
}

function useNumber(measure: Share["measure"], value: number): string {
  const { i18n } = useTranslation();
  const money: Intl.NumberFormatOptions = measure === "costUsd" ? { style: "currency", currency: "USD" } : {};
  return new Intl.NumberFormat(i18n.language, money).format(value);
}

function Ago({ at, now }: { at: number | null; now: number }) {
  const { t, i18n } = useTranslation();
  if (at === null) return <span className="text-ink-faint">{t("models.live.never")}</span>;
  return <span title={moment(at, i18n.language)}>{ago(at, i18n.language, now)}</span>;
}
