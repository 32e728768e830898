import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ready } from "@/api/queries";
import type { Schemas } from "@/api/views";
import { Chip } from "@/components/Chip";
import { Card, DescriptionList, PageSection } from "@/components/DescriptionList";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { MailDialog } from "./MailDialog";
import { MailSection } from "./MailSection";
import { SettingDialog } from "./SettingDialog";
import { SettingsTable } from "./SettingsTable";
import { type Setting, settings } from "./settings";
import { Workers } from "./Workers";

/** The settings and state of the server. Those that take effect at once are changed here. */
export function SettingsPage() {
  const { t } = useTranslation();
  const known = useQuery(settings);
  const readyNow = useQuery({ ...ready, refetchInterval: 10_000 });
  return (
    <Page title={t("settings.title")} about={t("settings.about")}>
      <QueryResult query={known}>
        {(reply) => (
          <>
            <PageSection title={t("settings.server")}>
              <Card>
                <DescriptionList
                  facts={{
                    [t("settings.version")]: reply.version,
                    [t("settings.store")]: <code className="wrap-anywhere">{reply.store}</code>,
                    ...(readyNow.data ? State(readyNow.data, t) : {}),
                  }}
                />
              </Card>
            </PageSection>
            <Workers />
            <Changeable all={reply.settings} />
          </>
        )}
      </QueryResult>
    </Page>
  );
}

/** The mail server, and all settings. */
function Changeable({ all }: { all: readonly Setting[] }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [changed, setChanged] = useState<Setting | null>(null);
  const again = () => {
    setChanged(null);
    void client.invalidateQueries({ queryKey: ["settings"] });
  };
  const mail = all.find((one) => one.name === "mail");
  const allowed = all.find((one) => one.name === "allow_email_sending");
  const Form = changed?.name === "mail" ? MailDialog : SettingDialog;
  return (
    <>
      {mail ? (
        <MailSection mail={mail} allowed={allowed} onAllow={() => setChanged(allowed ?? null)} onChanged={again} />
      ) : null}
      <PageSection title={t("settings.all")}>
        <SettingsTable all={all} onChange={setChanged} />
      </PageSection>
      {changed ? <Form known={changed} onDone={again} onClose={() => setChanged(null)} /> : null}
    </>
  );
}

function State(reply: Schemas["ReadyView"], t: (word: string) => string) {
  const isReady = reply.status === "ready";
  return {
    [t("settings.ready")]: (
      <Chip look={isReady ? "good" : "bad"}>{isReady ? t("settings.isReady") : t("settings.unready")}</Chip>
    ),
    [t("settings.answers")]: reply.store ? t("settings.yes") : t("settings.no"),
    [t("settings.room")]: reply.room ? t("settings.enough") : t("settings.little"),
    [t("settings.leader")]: reply.leader === "here" ? t("settings.here") : t("settings.standby"),
  };
}
