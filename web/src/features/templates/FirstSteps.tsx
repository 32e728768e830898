import { Link } from "@tanstack/react-router";
import { Check, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/IconButton";
import { reachStep, STEPS, useFirstSteps } from "./firstSteps";

/** The tour: try a template, make it yours, start it. It disappears when all is done or when it is closed. `isNew`: there
 * is no workflow yet; without a step behind them, users who have workflows do not see the tour. */
export function FirstSteps({ isNew }: { isNew: boolean }) {
  const { t } = useTranslation();
  const reached = useFirstSteps((state) => state.reached);
  if (!isNew && reached.size === 0) return null;
  if (reached.has("closed") || STEPS.every((step) => reached.has(step))) return null;
  const next = STEPS.find((step) => !reached.has(step));
  return (
    <section aria-label={t("tour.title")} className="mt-4 rounded-lg border border-line bg-surface p-4">
      <div className="flex items-start gap-2">
        <h2 className="flex-1 font-semibold">{t("tour.title")}</h2>
        <IconButton icon={X} name={t("tour.close")} onClick={() => reachStep("closed")} />
      </div>
      <ol className="mt-2 grid gap-3 sm:grid-cols-3">
        {STEPS.map((step, at) => (
          <li key={step} {...(step === next ? { "aria-current": "step" as const } : {})} className="flex gap-2.5">
            <span
              className={`flex size-6 shrink-0 items-center justify-center rounded-full text-xs font-semibold ${reached.has(step) ? "bg-done-soft text-done" : step === next ? "bg-accent text-on-accent" : "bg-sunken text-ink-soft"}`}
            >
              {reached.has(step) ? <Check className="size-3.5" aria-label={t("tour.done")} /> : at + 1}
            </span>
            <span>
              <span className="block font-medium">{t(`tour.${step}`)}</span>
              <span className="block text-ink-soft">{t(`tour.${step}About`)}</span>
              {step === next && step !== "run" ? (
                <Link to="/templates" className="text-accent hover:underline">
                  {t("tour.open")}
                </Link>
              ) : null}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
