import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { CopyPlus, ExternalLink } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { Button } from "@/components/Button";
import { PageSection } from "@/components/DescriptionList";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { textIn } from "@/i18n";
import { reachStep } from "./firstSteps";
import { TagList } from "./TagList";
import { TemplatePicture } from "./TemplatePicture";
import { TryTemplate } from "./TryTemplate";
import { copyTemplate, type TemplateDetail, template } from "./templates";

/** One template: its graph, a trial with sample answers, its text, and the copy. */
export function TemplatePage() {
  const { t, i18n } = useTranslation();
  const { id } = useParams({ from: "/templates/$id" });
  const known = useQuery(template(id));
  return (
    <Page
      title={textIn(known.data?.name, i18n.language, id)}
      back={{ to: "/templates", name: t("templates.title") }}
      about={textIn(known.data?.description, i18n.language)}
      actions={known.data ? <UseTemplate id={id} /> : undefined}
    >
      <QueryResult query={known}>{(one) => <Sections one={one} />}</QueryResult>
    </Page>
  );
}

function Sections({ one }: { one: TemplateDetail }) {
  const { t } = useTranslation();
  return (
    <>
      <TemplatePicture template={one} className="h-72 rounded-lg border border-line p-3" />
      <div className="mt-3 flex flex-wrap items-center gap-x-4 gap-y-2">
        <TagList tags={one.tags} />
        {one.page ? (
          <a
            href={one.page}
            target="_blank"
            rel="noreferrer"
            className="inline-flex items-center gap-1 text-accent hover:underline"
          >
            {t("templates.explained")} <ExternalLink className="size-3.5" aria-hidden />
          </a>
        ) : null}
      </div>
      {one.needs.length > 0 ? (
        <p className="mt-2 text-ink-soft">
          {t("templates.needs")}{" "}
          {one.needs.map((needed) => (
            <Link key={needed} to="/templates/$id" params={{ id: needed }} className="text-accent hover:underline">
              {needed}
            </Link>
          ))}
        </p>
      ) : null}
      <PageSection title={t("templates.try")} about={t("templates.tryAbout")}>
        <TryTemplate key={one.id} template={one} />
      </PageSection>
      <PageSection title={t("templates.document")}>
        <Source text={one.text} name={t("templates.document")} />
      </PageSection>
      <PageSection title={t("templates.script")} about={t("templates.scriptAbout")}>
        <Source text={one.script} name={t("templates.script")} />
      </PageSection>
    </>
  );
}

function Source({ text, name }: { text: string; name: string }) {
  return (
    <section
      aria-label={name}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it
      tabIndex={0}
      className="max-h-96 overflow-auto rounded-lg border border-line bg-surface p-3"
    >
      <pre className="font-mono text-xs">{text}</pre>
    </section>
  );
}

/** Save a copy and open it in the editor. */
function UseTemplate({ id }: { id: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const isEditor = useHasRole("editor");
  const use = useMutation<{ id: string }, ApiError>({
    mutationFn: () => copyTemplate(id),
    onSuccess: async (made) => {
      reachStep("use");
      await client.invalidateQueries({ queryKey: ["workflows"] });
      await navigate({ to: "/workflows/$id", params: { id: made.id } });
    },
  });
  if (!isEditor) return null;
  return (
    <>
      {use.isError ? <ErrorMessage error={use.error} /> : null}
      <Button kind="primary" disabled={use.isPending} onClick={() => use.mutate()}>
        <CopyPlus className="size-4" aria-hidden /> {t("templates.use")}
      </Button>
    </>
  );
}
