import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useDeferredValue, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError, ApiResponse } from "@/api/http";
import { definition } from "@/api/queries";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { WorkflowPicker } from "@/components/WorkflowPicker";
import {
  createSchedule,
  type Missed,
  type Overlap,
  previewTimes,
  type Schedule,
  type ScheduleFields,
  updateSchedule,
} from "./schedules";
import { Times } from "./Times";
import { TimingFields } from "./TimingFields";
import { draftOf, newDraft, ownZone, timingOf } from "./timing";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

const OVERLAPS: readonly Overlap[] = ["skip", "queue", "replace", "allow"];
const MISSES: readonly Missed[] = ["once", "skip", "all"];
const SHOWN = 5;

/** Create a schedule, or change an existing one. */
export function ScheduleDialog(props: { read?: ApiResponse<Schedule>; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const known = props.read?.value;
  const [workflow, setWorkflow] = useState(known?.workflowId ?? "");
  const [id, setId] = useState("");
  const form = useId();
  const [timing, setTiming] = useState(known ? draftOf(known) : newDraft());
  const [overlap, setOverlap] = useState<Overlap>(known?.overlap ?? "skip");
  const [missed, setMissed] = useState<Missed>(known?.missed ?? "once");
  const [input, setInput] = useState<Json>((known?.input as Json | undefined) ?? {});
  const wanted = timingOf(timing);
  const asked = useDeferredValue(wanted);
  const ahead = useQuery(previewTimes(asked));
  const keep = useMutation<Schedule, ApiError, ScheduleFields>({
    mutationFn: (said) => (props.read ? updateSchedule(props.read, said) : createSchedule(id.trim(), said)),
    onSuccess: async (kept) => {
      await client.invalidateQueries({ queryKey: ["schedules"] });
      props.onClose();
      if (!props.read) await navigate({ to: "/schedules/$id", params: { id: kept.id } });
    },
  });
  const isOff = keep.isPending || wanted === null || ahead.isError;
  return (
    <DraftDialog
      open
      wide
      onClose={props.onClose}
      title={known ? t("schedules.editTitle", { name: known.id }) : t("schedules.new")}
    >
      <div className="space-y-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <LabelledField name={t("schedules.workflow")} required>
            {(its) => (
              <WorkflowPicker {...its} value={workflow} onChange={setWorkflow} placeholder={t("schedules.choose")} />
            )}
          </LabelledField>
          {known ? null : (
            <LabelledField name={t("schedules.id")} about={t("schedules.idAbout")}>
              {(its) => (
                <input {...its} value={id} onChange={(event) => setId(event.target.value)} placeholder={workflow} />
              )}
            </LabelledField>
          )}
        </div>
        <TimingFields draft={timing} onChange={setTiming} wrong={ahead.error} />
        {ahead.data ? (
          <div aria-live="polite">
            <p className="mb-1 font-medium">{t("schedules.nextTimes")}</p>
            {/* The zone that the times were asked for: what is being typed may be none. */}
            <Times times={ahead.data.slice(0, SHOWN)} zone={asked && "cron" in asked ? asked.timezone : ownZone()} />
          </div>
        ) : null}
        <div className="grid gap-4 sm:grid-cols-2">
          <LabelledField name={t("schedules.overlap")} about={t("schedules.overlapAbout")}>
            {(its) => (
              <select {...its} value={overlap} onChange={(event) => setOverlap(event.target.value as Overlap)}>
                {OVERLAPS.map((one) => (
                  <option key={one} value={one}>
                    {t(`schedules.overlaps.${one}`)}
                  </option>
                ))}
              </select>
            )}
          </LabelledField>
          <LabelledField name={t("schedules.missed")} about={t("schedules.missedAbout")}>
            {(its) => (
              <select {...its} value={missed} onChange={(event) => setMissed(event.target.value as Missed)}>
                {MISSES.map((one) => (
                  <option key={one} value={one}>
                    {t(`schedules.misses.${one}`)}
                  </option>
                ))}
              </select>
            )}
          </LabelledField>
        </div>
        {keep.isError ? <ErrorMessage error={keep.error} /> : null}
        {workflow ? (
          <InputForm
            workflow={workflow}
            value={input}
            onChange={setInput}
            id={form}
            busy={isOff}
            onSubmit={(given) => wanted && keep.mutate({ ...wanted, workflow, input: given, missed, overlap })}
          />
        ) : (
          <p className="text-ink-soft">{t("schedules.pickWorkflow")}</p>
        )}
      </div>
      <DialogActions onClose={props.onClose}>
        <Button kind="primary" type="submit" form={form} disabled={!workflow || isOff}>
          {t("schedules.save")}
        </Button>
      </DialogActions>
    </DraftDialog>
  );
}

/** The input of each execution, as the start form of the workflow. */
function InputForm(props: {
  workflow: string;
  value: Json;
  onChange: (value: Json) => void;
  onSubmit: (value: Json) => void;
  id: string;
  busy: boolean;
}) {
  const { t } = useTranslation();
  const known = useQuery(definition(props.workflow));
  if (known.isError) return <ErrorMessage error={known.error} />;
  if (!known.data) return <Loading />;
  return (
    <section>
      <h3 className="mb-1 font-semibold">{t("schedules.input")}</h3>
      <Suspense fallback={<Loading />}>
        <SchemaForm
          schema={known.data.input ?? { type: "object" }}
          value={props.value}
          onChange={props.onChange}
          onSubmit={props.onSubmit}
          id={props.id}
          busy={props.busy}
        />
      </Suspense>
    </section>
  );
}
