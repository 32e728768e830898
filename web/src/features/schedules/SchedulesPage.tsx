import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CalendarPlus, Pause, Play } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { LargeListSearch, useSearch } from "@/components/LargeListSearch";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { EmptyMessage, ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { useWorkflowName } from "@/components/useWorkflowName";
import { WorkflowLink } from "@/components/WorkflowLink";
import { Outcome } from "./Outcome";
import { ScheduleDialog } from "./ScheduleDialog";
import { isResting, type Schedule, schedules, setPaused } from "./schedules";
import { TimingText } from "./TimingText";
import { onClocks, ownZone } from "./timing";
import { useScheduleName } from "./useScheduleName";

/** The list of schedules with the next due time and the last outcome of each. */
export function SchedulesPage() {
  const { t } = useTranslation();
  const search = useSearch();
  const known = useInfiniteQuery(schedules(search.words));
  const mayMake = useHasRole("editor");
  const [making, setMaking] = useState(false);
  const add = mayMake ? (
    <Button kind="primary" onClick={() => setMaking(true)}>
      <CalendarPlus className="size-4" aria-hidden /> {t("schedules.new")}
    </Button>
  ) : null;
  return (
    <Page
      title={t("schedules.title")}
      about={t("schedules.about")}
      actions={
        <>
          <LargeListSearch search={search} query={known} label={t("schedules.search")} />
          {add}
        </>
      }
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.schedules);
          if (all.length === 0 && search.words) {
            return <EmptyMessage title={t("schedules.noMatch", { words: search.words })} />;
          }
          return all.length === 0 ? (
            <EmptyMessage isNew title={t("schedules.none")}>
              {t("schedules.noneHint")}
            </EmptyMessage>
          ) : (
            <ScheduleTable found={all} />
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {making ? <ScheduleDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

function ScheduleTable({ found }: { found: readonly Schedule[] }) {
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const mayRest = useHasRole("operator");
  const named = useScheduleName();
  const change = useMutation({
    mutationFn: (one: Schedule) => setPaused(one.id, !isResting(one)),
    onSettled: () => client.invalidateQueries({ queryKey: ["schedules"] }),
  });
  return (
    <>
      {change.isError ? (
        <div className="mb-3">
          <ErrorMessage error={change.error} />
        </div>
      ) : null}
      <Listing
        name={t("schedules.title")}
        entries={found}
        keyOf={(one) => one.id}
        columns={[
          { name: t("schedules.name"), cell: (one) => <Named schedule={one} /> },
          { name: t("schedules.when"), cell: (one) => <TimingText cron={one.cron} every={one.every} at={one.at} /> },
          {
            name: t("schedules.next"),
            cell: (one) =>
              one.next === null ? null : (
                <RelativeTime at={one.next} title={onClocks(one.next, ownZone(), i18n.language)} />
              ),
          },
          { name: t("schedules.last"), cell: (one) => (one.results[0] ? <Outcome fired={one.results[0]} /> : null) },
          ...(mayRest
            ? [
                {
                  name: t("schedules.do"),
                  isNarrow: true,
                  cell: (one: Schedule) => (
                    <Button
                      kind="quiet"
                      disabled={change.isPending || !one.enabled}
                      onClick={() => change.mutate(one)}
                      aria-label={t(isResting(one) ? "schedules.resumeNamed" : "schedules.pauseNamed", {
                        name: named(one),
                      })}
                    >
                      {isResting(one) ? (
                        <Play className="size-4" aria-hidden />
                      ) : (
                        <Pause className="size-4" aria-hidden />
                      )}
                      {t(isResting(one) ? "schedules.resume" : "schedules.pause")}
                    </Button>
                  ),
                },
              ]
            : []),
        ]}
      />
    </>
  );
}

function Named({ schedule: one }: { schedule: Schedule }) {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const named = useScheduleName();
  return (
    <>
      <Link to="/schedules/$id" params={{ id: one.id }} title={one.id} className="inline-block hover:underline">
        <bdi>{named(one)}</bdi>
      </Link>
      <span className="flex flex-wrap gap-1 font-normal">
        {one.trigger !== null || workflowName(one.workflowId) === one.id ? null : (
          <WorkflowLink id={one.workflowId} className="text-xs text-ink-faint hover:underline" />
        )}
        {one.enabled ? null : <Chip>{t("schedules.disabled")}</Chip>}
        {one.enabled && one.paused ? <Chip look="careful">{t("schedules.paused")}</Chip> : null}
        {one.enabled && one.stopped !== null ? (
          <Chip look="careful" title={one.stopped}>
            {t("schedules.stopped")}
          </Chip>
        ) : null}
      </span>
    </>
  );
}
