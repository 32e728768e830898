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
import { StateEditor, useEditedState } from "./StateEditor";

/** Fork an execution after a row, or before a step. The user can change the data first. */
export function ForkDialog(props: { execution: Execution; at: number | null; step?: string; onClose: () => void }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const row = props.at ?? props.execution.seq;
  const stateQuery = useQuery(executionAt(props.execution.executionId, row));
  const about = props.step ? t("fork.before", { step: stepName(props.step, nodeName) }) : t("fork.about", { row });
  return (
    <DraftDialog open wide onClose={props.onClose} title={t("fork.title")} about={about}>
      <QueryResult query={stateQuery}>{(snapshot) => <Form {...props} state={snapshot.state} />}</QueryResult>
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
  const edited = useEditedState(props.state);
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
      <StateEditor edited={edited} />
      {copy.isError ? <ErrorMessage error={copy.error} /> : null}
      <DialogActions onClose={props.onClose}>
        <Button kind="primary" type="submit" disabled={copy.isPending || edited.error !== null}>
          {t("fork.go")}
        </Button>
      </DialogActions>
    </form>
  );
}
