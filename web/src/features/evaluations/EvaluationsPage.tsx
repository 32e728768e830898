import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Listing } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { EmptyMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { WorkflowLink } from "@/components/WorkflowLink";
import { DatasetDialog } from "./DatasetDialog";
import { datasets } from "./evaluations";

/** The datasets, and the dialog that adds one. */
export function EvaluationsPage() {
  const { t } = useTranslation();
  const known = useQuery(datasets());
  const mayWrite = useHasRole("editor");
  const [isMaking, setMaking] = useState(false);
  const add = mayWrite ? (
    <Button kind="primary" onClick={() => setMaking(true)}>
      <Plus className="size-4" aria-hidden /> {t("evaluations.new")}
    </Button>
  ) : null;
  return (
    <Page title={t("evaluations.title")} about={t("evaluations.about")} actions={add}>
      <QueryResult query={known}>
        {(found) =>
          found.length === 0 ? (
            <EmptyMessage isNew title={t("evaluations.none")}>
              {t("evaluations.noneHint")}
            </EmptyMessage>
          ) : (
            <Listing
              name={t("evaluations.title")}
              entries={found}
              keyOf={(one) => one.id}
              columns={[
                {
                  name: t("evaluations.dataset"),
                  cell: (one) => (
                    <Link to="/evaluations/$name" params={{ name: one.id }} className="hover:underline">
                      <bdi>{one.name}</bdi>
                    </Link>
                  ),
                },
                {
                  name: t("evaluations.workflow"),
                  cell: (one) => <WorkflowLink id={one.workflow} className="hover:underline" />,
                },
                { name: t("evaluations.cases"), cell: (one) => one.count, isNumber: true },
                { name: t("evaluations.scorers"), cell: (one) => one.scorers.map((each) => each.name).join(", ") },
                { name: t("evaluations.changed"), cell: (one) => <RelativeTime at={one.at} /> },
              ]}
            />
          )
        }
      </QueryResult>
      {isMaking ? <DatasetDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}
