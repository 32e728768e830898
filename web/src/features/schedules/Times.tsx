import { useTranslation } from "react-i18next";
import { Listing } from "@/components/Listing";
import { ago } from "@/components/times";
import { onClocks, ownZone } from "./timing";

/** Due times in the schedule's time zone, and in the user's if it differs. */
export function Times(props: { times: readonly number[]; zone: string }) {
  const { t, i18n } = useTranslation();
  const own = ownZone();
  const isElsewhere = props.zone !== own;
  if (props.times.length === 0) return <p className="text-ink-soft">{t("schedules.never")}</p>;
  return (
    <Listing
      name={t("schedules.nextTimes")}
      entries={props.times}
      keyOf={String}
      columns={[
        { name: props.zone, cell: (at) => onClocks(at, props.zone, i18n.language) },
        ...(isElsewhere
          ? [
              {
                name: t("schedules.yours", { zone: own }),
                cell: (at: number) => onClocks(at, own, i18n.language),
              },
            ]
          : []),
        { name: t("schedules.in"), cell: (at) => <span className="text-ink-soft">{ago(at, i18n.language)}</span> },
      ]}
    />
  );
}
