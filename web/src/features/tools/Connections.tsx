import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Confirm } from "@/components/Confirm";
import { PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { QueryResult } from "@/components/QueryResult";
import { ConnectToolsDialog } from "./ConnectToolsDialog";
import { type ConnectionKind, connections, disconnectTools, type ToolConnection } from "./connections";
import { ServerState } from "./Servers";
import { type Server, servers } from "./tools";

type Doing =
  | { action: "connect"; kind: ConnectionKind; known: ToolConnection | null }
  | { action: "disconnect"; known: ToolConnection };

/** The connected MCP servers and OpenAPI documents, to be added, changed and removed. For admins. */
export function Connections() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const known = useQuery(connections());
  const listed = useQuery(servers());
  const [doing, setDoing] = useState<Doing | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ["tools"] });
  const connect = (kind: ConnectionKind) => setDoing({ action: "connect", kind, known: null });
  return (
    <PageSection
      title={t("toolConnections.title")}
      about={t("toolConnections.about")}
      actions={
        <>
          <Button onClick={() => connect("mcp")}>{t("toolConnections.connect.mcp")}</Button>
          <Button onClick={() => connect("openapi")}>{t("toolConnections.connect.openapi")}</Button>
        </>
      }
    >
      <QueryResult query={known}>
        {(all) => (
          <>
            {all.connections.length === 0 ? <p className="text-ink-soft">{t("toolConnections.none")}</p> : null}
            <ConnectionTable all={all.connections} servers={listed.data ?? []} onDo={setDoing} />
            {doing?.action === "connect" ? (
              <ConnectToolsDialog {...doing} commands={all.commands} onSaved={again} onClose={() => setDoing(null)} />
            ) : null}
          </>
        )}
      </QueryResult>
      {doing?.action === "disconnect" ? (
        <Confirm
          title={t("toolConnections.disconnectNamed", { name: doing.known.name })}
          about={t("toolConnections.disconnectAbout")}
          confirmLabel={t("connections.disconnect")}
          action={() => disconnectTools(doing.known).then(again)}
          onClose={() => setDoing(null)}
        />
      ) : null}
    </PageSection>
  );
}

function ConnectionTable(props: {
  all: readonly ToolConnection[];
  servers: readonly Server[];
  onDo: (doing: Doing) => void;
}) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("toolConnections.title")}
      entries={props.all}
      keyOf={(one) => `${one.source} ${one.name}`}
      columns={[
        { name: t("toolConnections.name"), cell: (one) => <ConnectionName of={one} /> },
        {
          name: t("tools.state"),
          cell: (one) => <ConnectionState of={one} server={props.servers.find((server) => server.name === one.name)} />,
        },
        { name: t("tools.prefix"), cell: (one) => <code className="text-xs">{`${one.name}__`}</code> },
        {
          name: t("toolConnections.source"),
          cell: (one) =>
            one.source === "app" ? t("toolConnections.here") : t("connections.setBy", { source: one.source }),
        },
        {
          name: t("toolConnections.actions"),
          isNarrow: true,
          cell: (one) => (one.source === "app" ? <Actions of={one} onDo={props.onDo} /> : null),
        },
      ]}
    />
  );
}

function Actions({ of, onDo }: { of: ToolConnection; onDo: (doing: Doing) => void }) {
  const { t } = useTranslation();
  const { name, kind } = of;
  return (
    <span className="flex gap-1">
      <Button
        onClick={() => onDo({ action: "connect", kind, known: of })}
        aria-label={t("connections.changeNamed", { name })}
      >
        {t("connections.change")}
      </Button>
      <Button
        kind="mild"
        onClick={() => onDo({ action: "disconnect", known: of })}
        aria-label={t("connections.disconnectNamed", { name })}
      >
        {t("connections.disconnect")}
      </Button>
    </span>
  );
}

function ConnectionName({ of }: { of: ToolConnection }) {
  const { t } = useTranslation();
  return (
    <>
      <span className="font-medium">{of.name}</span>{" "}
      <span className="text-sm text-ink-soft">{t(`toolConnections.kinds.${of.kind}`)}</span>
      <span className="block text-xs text-ink-faint wrap-anywhere">
        {of.url || of.command.join(" ") || of.hosts.join(", ")}
      </span>
    </>
  );
}

function ConnectionState({ of, server }: { of: ToolConnection; server: Server | undefined }) {
  const { t } = useTranslation();
  if (of.source === "app" && !of.inUse && of.command.length === 0)
    return <Chip look="careful">{t("toolConnections.shadowed")}</Chip>;
  if (of.kind === "mcp") return server ? <ServerState server={server} /> : null;
  return <Chip look="good">{t("connections.connected")}</Chip>;
}
