import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { BOX } from "@/components/LabelledField";
import { type RetentionDraft, STATUSES } from "./settings";

/** For each status, how long executions are kept, and how many of each workflow. */
export function RetentionFields(props: {
  draft: RetentionDraft;
  change: (draft: RetentionDraft) => void;
  error: ReactNode;
}) {
  const { t } = useTranslation();
  const { draft, change } = props;
  return (
    <>
      <table className="w-full">
        <thead>
          <tr className="text-left">
            <th className="py-1 font-medium">{t("settings.retention.status")}</th>
            <th className="px-2 py-1 font-medium">{t("settings.retention.age")}</th>
            <th className="py-1 font-medium">{t("settings.retention.count")}</th>
          </tr>
        </thead>
        <tbody>
          {STATUSES.map((status) => {
            const rule = draft[status];
            const name = t(`settings.retention.statuses.${status}`);
            const put = (part: Partial<typeof rule>) => change({ ...draft, [status]: { ...rule, ...part } });
            return (
              <tr key={status}>
                <th scope="row" className="py-1 text-left font-normal">
                  {name}
                </th>
                <td className="px-2 py-1">
                  <input
                    aria-label={t("settings.retention.ageOf", { status: name })}
                    className={BOX}
                    placeholder="30d"
                    value={rule.age}
                    onChange={(event) => put({ age: event.target.value })}
                  />
                </td>
                <td className="py-1">
                  <input
                    aria-label={t("settings.retention.countOf", { status: name })}
                    className={BOX}
                    inputMode="numeric"
                    placeholder="1000"
                    value={rule.count}
                    onChange={(event) => put({ count: event.target.value.replaceAll(/\D/g, "").slice(0, 9) })}
                  />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {props.error ? (
        <div role="alert" className="text-sm text-failed">
          {props.error}
        </div>
      ) : null}
    </>
  );
}
