import { useTranslation } from "react-i18next";
import { percent, type Run } from "./evaluations";

const WIDTH = 900;
const HEIGHT = 160;
const EDGE = 12;
const COLOURS = ["stroke-accent", "stroke-done", "stroke-waiting", "stroke-failed", "stroke-ink-faint"] as const;
const DOTS = ["fill-accent", "fill-done", "fill-waiting", "fill-failed", "fill-ink-faint"] as const;

/** The mean of each score over the completed runs, oldest first. The table of runs has the same figures. */
export function ScoreChart({ runs }: { runs: readonly Run[] }) {
  const { t, i18n } = useTranslation();
  const done = runs.filter((one) => one.status === "completed").reverse();
  const names = [...new Set(done.flatMap((one) => Object.keys(one.scores)))].slice(0, COLOURS.length);
  if (done.length < 2) return null;
  const x = (nth: number) => EDGE + (nth / (done.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value: number) => EDGE + (1 - value) * (HEIGHT - 2 * EDGE);
  return (
    <figure className="mb-4 rounded-lg border border-line bg-surface p-4">
      <figcaption className="mb-2 flex flex-wrap gap-x-4 text-sm">
        <span className="font-medium">{t("evaluations.chart")}</span>
        {names.map((name, nth) => (
          <span key={name} className="flex items-center gap-1.5">
            <svg viewBox="0 0 8 8" className="size-2" aria-hidden="true">
              <circle cx="4" cy="4" r="4" className={DOTS[nth]} />
            </svg>
            <bdi>{name}</bdi>
          </span>
        ))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t("evaluations.chart")} className="w-full">
        {[0, 0.5, 1].map((value) => (
          <line key={value} x1={EDGE} x2={WIDTH - EDGE} y1={y(value)} y2={y(value)} className="stroke-line" />
        ))}
        {names.map((name, nth) => {
          const points = done.flatMap((one, at) => {
            const value = one.scores[name];
            return value === undefined ? [] : [{ at, value, run: one }];
          });
          return (
            <g key={name}>
              <polyline
                points={points.map((one) => `${x(one.at)},${y(one.value)}`).join(" ")}
                className={`fill-none stroke-2 ${COLOURS[nth]}`}
              />
              {points.map((one) => (
                <circle key={one.run.executionId} cx={x(one.at)} cy={y(one.value)} r={4} className={DOTS[nth]}>
                  <title>{`${name}, ${t("evaluations.revision", { revision: one.run.revision })}: ${percent(one.value, i18n.language)}`}</title>
                </circle>
              ))}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
