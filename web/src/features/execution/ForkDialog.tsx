import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { executionAt, fork } from "@/api/queries";
import type { Execution, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { EditedState, useEdited } from "./EditedState";

/** A copy that goes on by itself from a row on, or before a step, with data that may be changed first. */
export function ForkDialog(props: { execution: Execution; at: number | null; step?: string; onClose: () => void }) {
  const { t } = useTranslation();
  const called = useNodeName();
  const row = props.at ?? props.execution.seq;
  const then = useQuery(executionAt(props.execution.executionId, row));
  const about = props.step ? t("fork.before", { step: stepName(props.step, called) }) : t("fork.about", { row });
  return (
    <DraftDialog open wide onClose={props.onClose} title={t("fork.title")} about={about}>
      <QueryResult asked={then}>{(known) => <Form {...props} state={known.state} />}</QueryResult>
    </DraftDialog>
  );
}

function Form(props: {
  execution: Execution;
  at: number | null;
  step?: string;
  state: JsonObject;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const edited = useEdited(props.state);
  const copy = useMutation({
    mutationFn: () =>
      fork(props.execution.executionId, {
        ...(props.step ? { step: props.step } : props.at === null ? {} : { at: props.at }),
        ...(Object.keys(edited.set).length ? { set: edited.set } : {}),
      }),
    onSuccess: async ({ executionId }) => {
      props.onClose();
      await navigate({ to: "/executions/$id", params: { id: executionId } });
    },
  });
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        copy.mutate();
      }}
    >
      <EditedState edited={edited} />
      {copy.isError ? <ErrorMessage why={copy.error} /> : null}
      <DialogActions onClose={props.onClose}>
        <Button kind="primary" type="submit" disabled={copy.isPending || edited.wrong !== null}>
          {t("fork.go")}
        </Button>
      </DialogActions>
    </form>
  );
}
