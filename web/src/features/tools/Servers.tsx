import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";
import { PageSection } from "@/components/DescriptionList";
import { ErrorDetail } from "@/components/ErrorDetail";
import { Listing } from "@/components/Listing";
import { type Server, servers } from "./tools";

/** The configured MCP servers with their errors; nothing without a configured server. */
export function Servers() {
  const { t } = useTranslation();
  const known = useQuery(servers());
  if (!known.data || known.data.length === 0) return null;
  return (
    <PageSection title={t("tools.servers")}>
      <Listing
        name={t("tools.servers")}
        entries={known.data}
        keyOf={(one) => one.name}
        columns={[
          { name: t("tools.server"), cell: (one) => one.name },
          { name: t("tools.state"), cell: (one) => <ServerState server={one} /> },
          { name: t("tools.prefix"), cell: (one) => <code className="text-xs">{one.prefix}</code> },
        ]}
      />
    </PageSection>
  );
}

/** The number of tools that a server offers, or why it does not answer. */
export function ServerState({ server }: { server: Server }) {
  const { t } = useTranslation();
  if (server.failure === null) return <Chip look="good">{t("tools.offers", { count: server.tools })}</Chip>;
  return (
    <>
      <Chip look="bad">{server.failure.code}</Chip>
      <ErrorDetail code={server.failure.code} message={server.failure.message} hint={server.failure.hint} />
    </>
  );
}
