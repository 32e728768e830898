import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Code, CopyLine } from "./Code";
import { Check } from "./PublicationFields";
import type { Draft } from "./publish";
import { mcpConfiguration, openAiCode, toolName } from "./snippets";

/** Whether callers with a key are offered the workflow as an MCP tool and as an OpenAI model, and how they connect. */
export function ProgramOffers(props: {
  id: string;
  draft: Draft;
  mayChat: boolean;
  change: (part: Partial<Draft>) => void;
}) {
  const { t } = useTranslation();
  const { id, draft, change } = props;
  const server = window.location.origin;
  return (
    <div className="space-y-4">
      <Check
        label={t("publish.mcp")}
        about={t("publish.mcpAbout")}
        isOn={draft.mcp}
        onChange={(mcp) => change({ mcp })}
      />
      {draft.mcp ? (
        <Connection summary={t("publish.connectMcp")}>
          <CopyLine name={t("publish.address")} text={`${server}/mcp`} />
          <CopyLine name={t("publish.tool")} text={toolName(id)} />
          <Code name={t("publish.configuration")} text={mcpConfiguration(server)} />
        </Connection>
      ) : null}
      <Check
        label={t("publish.model")}
        about={t(props.mayChat ? "publish.modelAbout" : "publish.chatImpossible")}
        isOn={draft.model}
        onChange={(model) => change({ model })}
      />
      {draft.model && props.mayChat ? (
        <Connection summary={t("publish.connectModel")}>
          <CopyLine name={t("publish.address")} text={`${server}/v1`} />
          <CopyLine name={t("publish.modelName")} text={id} />
          <Code name={t("publish.languages.python")} text={openAiCode(server, id)} />
        </Connection>
      ) : null}
    </div>
  );
}

function Connection(props: { summary: string; children: React.ReactNode }) {
  const { t } = useTranslation();
  return (
    <details className="ml-6 rounded-md border border-line p-3">
      <summary className="min-h-6 cursor-pointer">{props.summary}</summary>
      <div className="mt-2 space-y-2">
        <p className="text-ink-soft">
          {t("publish.keyAbout")}{" "}
          <Link to="/keys" className="underline">
            {t("publish.toKeys")}
          </Link>
        </p>
        {props.children}
      </div>
    </details>
  );
}
