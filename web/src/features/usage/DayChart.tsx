import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ceiling, formatMeasure, type Measure } from "./usage";

const WIDTH = 900;
const HEIGHT = 180;
const BOTTOM = 2;

/** A bar for each day. A table below has the same data, so screen readers get the chart as one image; pointing at a day
 * shows its value. */
export function DayChart(props: { days: readonly [string, number][]; measure: Measure; title: string }) {
  const { i18n } = useTranslation();
  const [at, setAt] = useState<number | null>(null);
  const { days, measure } = props;
  const top = ceiling(Math.max(...days.map(([, value]) => value)));
  const step = WIDTH / days.length;
  const high = (value: number) => (value / top) * (HEIGHT - BOTTOM - 10);
  const pointed = at === null ? undefined : days[at];
  const say = (day: string) =>
    new Date(`${day}T00:00:00Z`).toLocaleDateString(i18n.language, { timeZone: "UTC", day: "numeric", month: "short" });
  const marks = [0, Math.floor((days.length - 1) / 2), days.length - 1].filter((one, n, all) => all.indexOf(one) === n);
  return (
    <figure className="rounded-lg border border-line bg-surface p-4">
      <figcaption className="mb-2 flex min-h-5 flex-wrap gap-x-3 text-sm">
        <span className="font-medium first-letter:uppercase">{props.title}</span>
        {pointed ? (
          <span className="text-ink-soft tabular-nums">
            {say(pointed[0])}: {formatMeasure(pointed[1], measure, i18n.language)}
          </span>
        ) : null}
      </figcaption>
      <p aria-hidden className="text-xs text-ink-faint tabular-nums">
        {formatMeasure(top, measure, i18n.language)}
      </p>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={props.title}
        className="h-44 w-full"
        preserveAspectRatio="none"
        onPointerLeave={() => setAt(null)}
      >
        {[0, 0.5, 1].map((part) => (
          <line
            key={part}
            x1={0}
            x2={WIDTH}
            y1={HEIGHT - BOTTOM - high(top * part)}
            y2={HEIGHT - BOTTOM - high(top * part)}
            className="stroke-line"
            vectorEffect="non-scaling-stroke"
          />
        ))}
        {days.map(([day, value], number) => (
          <g key={day} onPointerEnter={() => setAt(number)}>
            <rect
              x={number * step}
              y={0}
              width={step}
              height={HEIGHT - BOTTOM}
              className={at === number ? "fill-accent-soft" : "fill-transparent"}
            />
            <rect
              x={number * step + step * 0.12}
              y={HEIGHT - BOTTOM - high(value)}
              width={step * 0.76}
              height={high(value)}
              className="fill-accent"
            />
          </g>
        ))}
      </svg>
      <div aria-hidden className="mt-1 flex justify-between text-xs text-ink-faint tabular-nums">
        {marks.map((number) => (
          <span key={number}>{say(days[number]?.[0] ?? "")}</span>
        ))}
      </div>
    </figure>
  );
}
