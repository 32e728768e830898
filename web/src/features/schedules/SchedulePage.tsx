import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Pause, Pencil, Play, Trash2, Zap } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiResponse } from "@/api/http";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Confirm } from "@/components/Confirm";
import { Card, DescriptionList, PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { WorkflowLink } from "@/components/WorkflowLink";
import { Value } from "@/features/execution/Value";
import { Outcome } from "./Outcome";
import { ScheduleDialog } from "./ScheduleDialog";
import { deleteSchedule, isResting, runNow, type Schedule, schedule, setPaused, timesOf } from "./schedules";
import { Times } from "./Times";
import { TimingText } from "./TimingText";
import { onClocks, ownZone } from "./timing";
import { useScheduleName } from "./useScheduleName";

/** One schedule: workflow, next due time, and the outcomes of the latest ones. */
export function SchedulePage() {
  const { t } = useTranslation();
  const { id } = useParams({ from: "/schedules/$id" });
  const known = useQuery(schedule(id));
  const named = useScheduleName();
  return (
    <Page
      title={known.data ? named(known.data.value) : id}
      back={{ to: "/schedules", name: t("schedules.title") }}
      actions={known.data ? <Actions read={known.data} /> : null}
    >
      <QueryResult query={known}>{(read) => <ScheduleFacts one={read.value} />}</QueryResult>
    </Page>
  );
}

function Actions({ read }: { read: ApiResponse<Schedule> }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const one = read.value;
  const [mayRun, mayWrite] = [useHasRole("operator"), useHasRole("editor")];
  const [asking, setAsking] = useState<"edit" | "delete" | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ["schedules"] });
  const run = useMutation({ mutationFn: () => runNow(one.id), onSettled: again });
  const change = useMutation({ mutationFn: () => setPaused(one.id, !isResting(one)), onSettled: again });
  const isOwn = one.trigger === null;
  return (
    <>
      {mayRun ? (
        <>
          <Button onClick={() => run.mutate()} disabled={run.isPending}>
            <Zap className="size-4" aria-hidden /> {t("schedules.runNow")}
          </Button>
          <Button onClick={() => change.mutate()} disabled={change.isPending || !one.enabled}>
            {isResting(one) ? <Play className="size-4" aria-hidden /> : <Pause className="size-4" aria-hidden />}
            {t(isResting(one) ? "schedules.resume" : "schedules.pause")}
          </Button>
        </>
      ) : null}
      {mayWrite && isOwn ? (
        <>
          <Button onClick={() => setAsking("edit")}>
            <Pencil className="size-4" aria-hidden /> {t("schedules.edit")}
          </Button>
          <Button kind="danger" onClick={() => setAsking("delete")}>
            <Trash2 className="size-4" aria-hidden /> {t("schedules.delete")}
          </Button>
        </>
      ) : null}
      {run.isError || change.isError ? (
        <div className="w-full">
          <ErrorMessage error={run.error ?? change.error} />
        </div>
      ) : null}
      {asking === "edit" ? <ScheduleDialog read={read} onClose={() => setAsking(null)} /> : null}
      {asking === "delete" ? (
        <Confirm
          title={t("schedules.deleteTitle", { name: one.id })}
          about={t("schedules.deleteAbout")}
          confirmLabel={t("schedules.delete")}
          action={() => deleteSchedule(read)}
          onDone={async () => {
            client.removeQueries({ queryKey: ["schedules", one.id] });
            await navigate({ to: "/schedules" });
          }}
          onClose={() => setAsking(null)}
        />
      ) : null}
    </>
  );
}

function ScheduleFacts({ one }: { one: Schedule }) {
  const { t, i18n } = useTranslation();
  const times = useQuery(timesOf(one.id, 5));
  return (
    <>
      <Card>
        <DescriptionList
          facts={{
            [t("schedules.state")]: one.enabled ? (
              isResting(one) ? (
                <Chip look="careful">{t(one.paused ? "schedules.paused" : "schedules.stopped")}</Chip>
              ) : (
                <Chip look="good">{t("schedules.active")}</Chip>
              )
            ) : (
              <Chip>{t("schedules.disabled")}</Chip>
            ),
            [t("schedules.whyStopped")]: one.stopped,
            [t("schedules.owner")]: one.owner,
            [t("schedules.when")]: <TimingText cron={one.cron} every={one.every} at={one.at} />,
            [t("schedules.zone")]: one.cron === null ? null : one.timezone,
            [t("schedules.workflow")]: <WorkflowLink id={one.workflowId} className="text-accent underline" />,
            [t("schedules.overlap")]: t(`schedules.overlaps.${one.overlap}`),
            [t("schedules.missed")]: t(`schedules.misses.${one.missed}`),
            [t("schedules.queued")]: one.queued.length > 0 ? one.queued.length : null,
            [t("schedules.document")]:
              one.trigger === null ? null : t("schedules.documentAbout", { trigger: one.trigger }),
          }}
        />
      </Card>
      <PageSection title={t("schedules.nextTimes")}>
        <QueryResult query={times}>
          {(found) => <Times times={found} zone={one.cron === null ? ownZone() : one.timezone} />}
        </QueryResult>
      </PageSection>
      <PageSection title={t("schedules.results")}>
        {one.results.length === 0 ? <p className="text-ink-soft">{t("schedules.noResults")}</p> : null}
        <Listing
          name={t("schedules.results")}
          entries={one.results}
          keyOf={(fired) => `${fired.due} ${fired.outcome} ${fired.executionId}`}
          columns={[
            { name: t("schedules.due"), cell: (fired) => onClocks(fired.due, ownZone(), i18n.language) },
            { name: t("schedules.became"), cell: (fired) => <Outcome fired={fired} /> },
          ]}
        />
      </PageSection>
      <PageSection title={t("schedules.input")}>
        <Value value={one.input as Json} />
      </PageSection>
    </>
  );
}
