import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import type { JsonObject } from "@/api/views";
import { Card, DescriptionList, PageSection } from "@/components/DescriptionList";
import { ServerText } from "@/components/ErrorDetail";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { SchemaTable } from "@/components/SchemaTable";
import { ToolDescription } from "./ToolDescription";
import { TryTool } from "./TryTool";
import { type Tool, tool } from "./tools";

/** One tool: description, parameters, and a form to try it. */
export function ToolPage() {
  const { t } = useTranslation();
  const { name } = useParams({ from: "/tools/$name" });
  const known = useQuery(tool(name));
  return (
    <Page
      title={name}
      back={{ to: "/tools", name: t("tools.title") }}
      about={known.data ? <ToolDescription tool={known.data} /> : undefined}
    >
      <QueryResult query={known}>
        {(one) => (
          <>
            <Card>
              <Effects tool={one} />
            </Card>
            <PageSection title={t("tools.takes")}>
              <SchemaTable schema={one.parameters as JsonObject} name={t("tools.takes")} />
            </PageSection>
            <PageSection title={t("tools.try")}>
              <TryTool tool={one} />
            </PageSection>
          </>
        )}
      </QueryResult>
    </Page>
  );
}

function Effects({ tool: one }: { tool: Tool }) {
  const { t } = useTranslation();
  return (
    <DescriptionList
      facts={{
        [t("tools.originName")]: t(`origin.${one.origin}`, one.origin),
        [t("tools.off")]: one.enabled ? null : <ServerText text={one.off ?? ""} look="text-failed" />,
        [t("tools.effects")]: (
          <ul>
            <li>{one.requiresApproval ? t("tools.approvalLong") : t("tools.noApproval")}</li>
            <li>{one.idempotent ? t("tools.idempotentLong") : t("tools.notIdempotent")}</li>
            <li>{one.side === "client" ? t("tools.clientLong") : t("tools.serverLong")}</li>
          </ul>
        ),
      }}
    />
  );
}
