import { useMutation } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ErrorMessage } from "@/components/StatusMessage";
import { useFormErrors } from "@/components/useFormErrors";
import { ConnectionFields, fieldsOf } from "./ConnectionFields";
import {
  type ConnectionKind,
  type ConnectionTest,
  connectTools,
  type Entered,
  entryOf,
  hasKey,
  NAME,
  requestOf,
  type ToolConnection,
  testConnection,
} from "./connections";
import { ALL, type Choice, choiceOf, OfferedTools, patternsOf } from "./OfferedTools";
import type { TriedTool } from "./tools";

const NOTHING: Choice = { tools: new Set(), approvals: new Set() };

/** Connect an MCP server or an OpenAPI document: test it, choose tools, save. `known` is the connection to change. */
export function ConnectToolsDialog(props: {
  kind: ConnectionKind;
  known: ToolConnection | null;
  commands: readonly string[][];
  onSaved: () => Promise<void>;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { kind, known } = props;
  const form = useId();
  const [entered, setEntered] = useState<Entered>(() => entryOf(known, props.commands));
  const [choice, setChoice] = useState<Choice>(NOTHING);
  const testing = useMutation<ConnectionTest, ApiError>({
    mutationFn: () => testConnection(entered.name, requestOf(kind, entered, ALL)),
    onSuccess: (test) => {
      setChoice(choiceOf(test, known, kind));
      const auth = test.auth;
      if (auth && entered.auth === "none" && !known)
        setEntered({ ...entered, auth: auth.type, authName: auth.type === "bearer" ? "" : auth.name });
    },
  });
  const saving = useMutation({
    mutationFn: (test: boolean) =>
      connectTools(known, entered.name, requestOf(kind, entered, offered ? patternsOf(choice) : ALL), test),
    onSuccess: async (result) => {
      if (!result.saved) return;
      await props.onSaved();
      props.onClose();
    },
  });
  const errors = useFormErrors(saving.error ?? testing.error, fieldsOf(kind, known, entered));
  const failure = testing.data?.failure ?? saving.data?.test?.failure ?? null;
  const offered = testing.data && !testing.data.failure ? testing.data : null;
  const mayTest = isComplete(kind, entered, known);
  const change = (changed: Partial<Entered>) => {
    setEntered({ ...entered, ...changed });
    saving.reset();
    if (kind === "mcp" || SOURCE.some((field) => field in changed)) testing.reset();
  };
  const tryOut = async (tool: string, given: Parameters<typeof testConnection>[2]): Promise<TriedTool> => {
    const test = await testConnection(
      entered.name,
      requestOf(kind, entered, { tools: [tool], requiresApproval: [] }),
      given,
    );
    return (test.tried as TriedTool | null) ?? { ok: false, result: null, failure: test.failure };
  };
  const busy = testing.isPending || saving.isPending;
  return (
    <DraftDialog
      open
      wide
      onClose={props.onClose}
      title={known ? t("connections.changeNamed", { name: known.name }) : t(`toolConnections.connect.${kind}`)}
      about={t(`toolConnections.sealed.${kind}`)}
    >
      <form
        id={form}
        ref={errors.form}
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (offered) saving.mutate(kind === "openapi");
          else testing.mutate();
        }}
      >
        {errors.rest ? <ErrorMessage error={errors.rest} /> : null}
        <ConnectionFields
          kind={kind}
          known={known}
          entered={entered}
          commands={props.commands}
          change={change}
          errors={errors}
        />
        {failure ? <TestFailed {...failure} /> : null}
      </form>
      <div className="mt-4 space-y-4">
        {offered ? (
          <OfferedTools
            test={offered}
            choice={choice}
            onChoose={setChoice}
            onTry={hasToEnter(entered, known) ? null : tryOut}
          />
        ) : null}
        <DialogActions onClose={props.onClose}>
          {failure && kind === "mcp" ? (
            <Button disabled={busy} onClick={() => saving.mutate(false)}>
              {t("connections.saveAnyway")}
            </Button>
          ) : null}
          {offered ? (
            <Button disabled={busy || !mayTest} onClick={() => testing.mutate()}>
              {t("toolConnections.testAgain")}
            </Button>
          ) : null}
          <Button
            kind="primary"
            type="submit"
            form={form}
            disabled={busy || !mayTest || (offered !== null && (choice.tools.size === 0 || hasToEnter(entered, known)))}
          >
            {t(busy ? "connections.testing" : offered ? "toolConnections.save" : `toolConnections.test.${kind}`)}
          </Button>
        </DialogActions>
      </div>
    </DraftDialog>
  );
}

/** Fields whose change needs another reading of the document. */
const SOURCE: readonly (keyof Entered)[] = ["by", "url", "document", "server"];

/** Whether a key must be entered before a tool is called. */
const hasToEnter = (entered: Entered, known: ToolConnection | null) =>
  (hasKey(entered.auth) && entered.key === "" && !(known && hasKey(known.auth))) ||
  ((entered.auth === "header" || entered.auth === "query") && entered.authName === "") ||
  (entered.auth === "secret" && entered.secret === "");

function isComplete(kind: ConnectionKind, entered: Entered, known: ToolConnection | null): boolean {
  const place = entered.by === "address" ? entered.url : entered.by === "command" ? entered.command : entered.document;
  return NAME.test(entered.name) && place.trim() !== "" && (kind === "openapi" || !hasToEnter(entered, known));
}

function TestFailed(props: { code: string; message: string; hint: string }) {
  const { t } = useTranslation();
  return (
    <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
      <p className="font-medium">{t("toolConnections.failed")}</p>
      <ErrorDetail code={props.code} message={props.message} hint={props.hint} />
    </div>
  );
}
