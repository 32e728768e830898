import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Listing } from "@/components/Listing";
import { QueryResult } from "@/components/QueryResult";
import { WorkflowLink } from "@/components/WorkflowLink";
import { uses } from "./agents";

/** The workflows that use an agent, limited to those that the user may see. */
export function AgentUses({ name }: { name: string }) {
  const { t } = useTranslation();
  const known = useQuery(uses(name));
  return (
    <QueryResult query={known}>
      {(found) =>
        found.length === 0 ? (
          <p className="text-ink-soft">{t("agents.unused")}</p>
        ) : (
          <Listing
            name={t("agents.uses")}
            entries={found}
            keyOf={(one) => one.workflowId}
            columns={[
              {
                name: t("agents.workflow"),
                cell: (one) => <WorkflowLink id={one.workflowId} className="hover:underline" />,
              },
              {
                name: t("agents.namedAs"),
                cell: (one) => <span className="font-mono text-xs">{one.names.join(", ")}</span>,
              },
            ]}
          />
        )
      }
    </QueryResult>
  );
}
