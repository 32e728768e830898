import { lazy, Suspense, useCallback, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import { executionPath } from "@/api/queries";
import type { DefinitionNode, Execution, ExecutionEntry, Json, JsonObject } from "@/api/views";
import { Loading } from "@/components/StatusMessage";
import { edgeNames } from "@/graph/model/edgeNames";
import type { Draft } from "../document/draft";
import { scopeAt } from "../document/formulaScope";
import { useEditor } from "../editorContext";
import { type Form, FormProvider } from "../fields/fieldContext";
import { EdgeForm } from "./EdgeForm";
import { NodeForm } from "./NodeForm";
import { WorkflowForm } from "./WorkflowForm";

const NodeData = lazy(() => import("@/features/trying/NodeData"));

/** Form of the selected node or edge, otherwise of the workflow. */
export function Properties() {
  const { id, draft, node, picked, schema, checked, saved } = useEditor();
  const { i18n } = useTranslation();
  const definition = draft.shown;
  const edge = picked?.kind === "edge" ? definition.edges[edgeNames(definition.edges).indexOf(picked.id)] : undefined;
  const from = node ?? definition.nodes.find((one) => one.id === edge?.source);
  const sample = useCallback(() => lastState(id), [id]);
  // Problem pointers refer to the author's document; in other dialects they do not match the fields.
  const problems = saved.dialect === "native" ? checked.problems : NONE;
  const form = useMemo<Form>(
    () => ({
      problems,
      known: scopeAt(definition, from, i18n.language),
      nodes: definition.nodes.map((one) => one.id),
      sample,
    }),
    [problems, definition, from, sample, i18n.language],
  );
  if (!schema) return <Loading />;
  return (
    <FormProvider value={form}>
      {node ? (
        <NodeWithData key={node.id} node={node} schema={schema} draft={draft} />
      ) : picked?.kind === "edge" && edge ? (
        <EdgeForm key={picked.id} name={picked.id} edge={edge} schema={schema} draft={draft} />
      ) : (
        <WorkflowForm schema={schema} draft={draft} />
      )}
    </FormProvider>
  );
}

/** The form of a node, on request in a dialog between its data of past executions. */
function NodeWithData(props: { node: DefinitionNode; schema: JsonObject; draft: Draft }) {
  const [hasData, showData] = useState(false);
  if (!hasData) return <NodeForm {...props} onShowData={() => showData(true)} />;
  return (
    <Suspense fallback={<Loading />}>
      <NodeData node={props.node} onClose={() => showData(false)}>
        <NodeForm {...props} />
      </NodeData>
    </Suspense>
  );
}

const NONE: readonly never[] = [];

/** State at the end of the workflow's last execution. */
async function lastState(workflow: string): Promise<JsonObject | null> {
  try {
    const path = `/api/workflows/executions?workflow=${encodeURIComponent(workflow)}&limit=1`;
    const [last] = (await apiRequest<{ executions: ExecutionEntry[] }>(path)).executions;
    if (!last) return null;
    const found = await apiRequest<Execution>(executionPath(last.executionId));
    return { ...found.state, input: found.input, result: found.output as Json };
  } catch {
    // Without an accessible execution, the user types the values.
    return null;
  }
}
