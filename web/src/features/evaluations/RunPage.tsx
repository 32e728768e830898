import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import type { ExecutionStatus, Json } from "@/api/views";
import { Chip } from "@/components/Chip";
import { Card, DescriptionList, PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { Status } from "@/components/Status";
import { EmptyMessage } from "@/components/StatusMessage";
import { WorkflowLink } from "@/components/WorkflowLink";
import { brief } from "@/values/changes";
import { percent, type RunDetail, run } from "./evaluations";

/** One evaluation run: the mean of each score, and the result of each case. */
export function RunPage() {
  const { t } = useTranslation();
  const { name, run: id } = useParams({ from: "/evaluations/$name/$run" });
  const known = useQuery(run(id));
  return (
    <Page
      title={t("evaluations.runOf", { name })}
      back={{ to: `/evaluations/${encodeURIComponent(name)}`, name }}
      actions={
        <Link to="/executions/$id" params={{ id }} className="text-accent hover:underline">
          {t("evaluations.execution")}
        </Link>
      }
    >
      <QueryResult query={known}>{(found) => <Result found={found} />}</QueryResult>
    </Page>
  );
}

function Result({ found }: { found: RunDetail }) {
  const { t, i18n } = useTranslation();
  const shown = (value: number) => percent(value, i18n.language);
  return (
    <>
      <Card>
        <DescriptionList
          facts={{
            [t("evaluations.workflow")]: <WorkflowLink id={found.workflow} className="hover:underline" />,
            [t("evaluations.version")]: t("evaluations.revision", { revision: found.revision }),
            [t("evaluations.status")]: <Status status={found.status as ExecutionStatus} />,
            [t("evaluations.started")]: <RelativeTime at={found.at} />,
            [t("evaluations.failed")]: found.failed > 0 ? found.failed : null,
            ...Object.fromEntries(Object.entries(found.scores).map(([name, mean]) => [name, shown(mean)])),
          }}
        />
      </Card>
      <PageSection title={t("evaluations.cases")}>
        {found.cases.length === 0 ? (
          <EmptyMessage title={t("evaluations.notYet")}>{t("evaluations.notYetHint")}</EmptyMessage>
        ) : (
          <Listing
            name={t("evaluations.cases")}
            entries={found.cases}
            keyOf={(one) => one.case}
            columns={[
              { name: t("evaluations.input"), cell: (one) => brief(one.input as Json) },
              { name: t("evaluations.expected"), cell: (one) => brief(one.expected as Json) },
              {
                name: t("evaluations.output"),
                cell: (one) => (one.error ? <Chip look="bad">{one.error}</Chip> : brief(one.output as Json)),
              },
              ...found.scorers.map(({ name }) => ({
                name: String(name),
                isNumber: true,
                cell: (one: RunDetail["cases"][number]) => (
                  <span title={one.reasons[String(name)]}>{shown(one.scores[String(name)] ?? 0)}</span>
                ),
              })),
            ]}
          />
        )}
      </PageSection>
    </>
  );
}
