import { Check, LoaderCircle, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { money } from "@/components/amounts";
import { ProblemList } from "@/components/StatusMessage";
import { costOf, type Round } from "./rounds";

/** The rounds of a design: the model's drafts, their problems, and the cost. `isBusy`: another round is running. */
export function Rounds({ rounds, isBusy }: { rounds: readonly Round[]; isBusy: boolean }) {
  const { t, i18n } = useTranslation();
  const cost = costOf(rounds);
  const last = rounds.at(-1);
  return (
    <div className="text-sm">
      <ol aria-live="polite" aria-label={t("assistant.rounds")} className="space-y-1">
        {rounds.map((one) => (
          <li key={one.round}>
            {one.problems.length === 0 ? (
              <p className="flex items-center gap-1.5 text-ink-soft">
                <Sign ok={one.ok} /> {t("assistant.roundGood", { round: one.round })}
              </p>
            ) : (
              <details>
                <summary className="flex min-h-6 cursor-pointer items-center gap-1.5 rounded text-ink-soft">
                  <Sign ok={one.ok} />
                  {t("assistant.round", { round: one.round, count: one.problems.length })}
                </summary>
                <ProblemList problems={one.problems} />
              </details>
            )}
          </li>
        ))}
        {isBusy ? (
          <li className="flex items-center gap-1.5 text-ink-soft">
            <LoaderCircle className="size-4 shrink-0 animate-spin text-running" aria-hidden />
            {rounds.length === 0 ? t("assistant.drafting") : t("assistant.mending")}
          </li>
        ) : null}
      </ol>
      {!isBusy && last?.model === "scripted" ? <p className="mt-1 text-waiting">{t("assistant.scripted")}</p> : null}
      {rounds.length > 0 ? (
        <p className="mt-1 text-xs text-ink-faint">
          {[
            rounds.at(-1)?.model,
            t("assistant.tokens", { tokens: cost.tokens.toLocaleString(i18n.language) }),
            cost.usd === null ? t("assistant.noPrice") : money(cost.usd),
          ].join(" · ")}
        </p>
      ) : null}
    </div>
  );
}

function Sign({ ok }: { ok: boolean }) {
  return ok ? (
    <Check className="size-4 shrink-0 text-done" aria-hidden />
  ) : (
    <X className="size-4 shrink-0 text-failed" aria-hidden />
  );
}
