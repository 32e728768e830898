import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/http";
import { ErrorDetail } from "@/components/ErrorDetail";
import { LabelledField } from "@/components/LabelledField";
import { TimingText } from "./TimingText";
import { type Kind, ownZone, type TimingDraft, UNITS, type Unit } from "./timing";

const KINDS: readonly Kind[] = ["cron", "every", "at"];

/** Fields for the timing: cron, interval, or once. An error of the server is shown at the field it concerns. */
export function TimingFields(props: { draft: TimingDraft; onChange: (draft: TimingDraft) => void; wrong: unknown }) {
  const { t } = useTranslation();
  const { draft } = props;
  const change = (part: Partial<TimingDraft>) => props.onChange({ ...draft, ...part });
  const why = props.wrong instanceof ApiError ? props.wrong : null;
  const errorDetail = why ? <ErrorDetail code={why.code} message={why.message} hint={why.hint} /> : undefined;
  const isZone = why?.code === "zone-unknown";
  return (
    <fieldset className="space-y-3">
      <legend className="mb-1 font-medium">{t("schedules.when")}</legend>
      <div className="flex flex-wrap gap-x-5 gap-y-1">
        {KINDS.map((kind) => (
          <label key={kind} className="flex min-h-6 items-center gap-2">
            <input
              type="radio"
              name="kind"
              checked={draft.kind === kind}
              onChange={() => change({ kind })}
              className="size-4"
            />
            {t(`schedules.kinds.${kind}`)}
          </label>
        ))}
      </div>
      {draft.kind === "cron" ? (
        <div className="grid gap-4 sm:grid-cols-2">
          <LabelledField
            name={t("schedules.cron")}
            about={t("schedules.cronAbout")}
            error={isZone ? undefined : errorDetail}
            required
          >
            {(its) => (
              <>
                <input
                  {...its}
                  className={`${its.className} font-mono`}
                  value={draft.cron}
                  spellCheck={false}
                  onChange={(event) => change({ cron: event.target.value })}
                />
                {errorDetail ? null : (
                  <p className="mt-0.5 text-sm text-ink-soft">
                    <TimingText cron={draft.cron} every={null} at={null} isPlain />
                  </p>
                )}
              </>
            )}
          </LabelledField>
          <ZoneField
            value={draft.timezone}
            wrong={isZone ? errorDetail : undefined}
            onChange={(timezone) => change({ timezone })}
          />
        </div>
      ) : null}
      {draft.kind === "every" ? (
        <div className="grid grid-cols-2 gap-4 sm:max-w-sm">
          <LabelledField name={t("schedules.every")} error={errorDetail} required>
            {(its) => (
              <input
                {...its}
                type="number"
                min={1}
                step="any"
                value={draft.amount}
                onChange={(event) => change({ amount: event.target.value })}
              />
            )}
          </LabelledField>
          <LabelledField name={t("schedules.unit")}>
            {(its) => (
              <select {...its} value={draft.unit} onChange={(event) => change({ unit: event.target.value as Unit })}>
                {Object.keys(UNITS).map((unit) => (
                  <option key={unit} value={unit}>
                    {t(`schedules.units.${unit}`)}
                  </option>
                ))}
              </select>
            )}
          </LabelledField>
        </div>
      ) : null}
      {draft.kind === "at" ? (
        <div className="sm:max-w-sm">
          <LabelledField
            name={t("schedules.at")}
            about={t("schedules.atAbout", { zone: ownZone() })}
            error={errorDetail}
            required
          >
            {(its) => (
              <input
                {...its}
                type="datetime-local"
                value={draft.at}
                onChange={(event) => change({ at: event.target.value })}
              />
            )}
          </LabelledField>
        </div>
      ) : null}
    </fieldset>
  );
}

function ZoneField(props: { value: string; wrong: ReactNode; onChange: (zone: string) => void }) {
  const { t } = useTranslation();
  const zones = useId();
  return (
    <LabelledField name={t("schedules.zone")} about={t("schedules.zoneAbout")} error={props.wrong} required>
      {(its) => (
        <>
          <input
            {...its}
            list={zones}
            value={props.value}
            spellCheck={false}
            onChange={(event) => props.onChange(event.target.value)}
          />
          <datalist id={zones}>
            {Intl.supportedValuesOf("timeZone").map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </>
      )}
    </LabelledField>
  );
}
