import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { Card, DescriptionList, PageSection } from "@/components/DescriptionList";
import { EmptyMessage } from "@/components/StatusMessage";
import { MailDialog } from "./MailDialog";
import { isChangeable, isEntered, type MailServer, PORTS, resetSetting, type Setting } from "./settings";

/** The mail server of notices and of the tool `send_email`. */
export function MailSection(props: {
  mail: Setting;
  /** Whether agents may send mail. */
  allowed: Setting | undefined;
  onAllow: () => void;
  onChanged: () => void;
}) {
  const { t } = useTranslation();
  const { mail, allowed } = props;
  const [isChanging, setChanging] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const server = mail.value as MailServer | null;
  return (
    <PageSection
      title={t("settings.mail.title")}
      about={t("settings.mail.about")}
      actions={
        isChangeable(mail) ? (
          <>
            {isEntered(mail) ? (
              <Button kind="danger" onClick={() => setDeleting(true)}>
                {t("settings.mail.delete")}
              </Button>
            ) : null}
            <Button kind={server ? "plain" : "primary"} onClick={() => setChanging(true)}>
              {t(server ? "settings.mail.change" : "settings.mail.enter")}
            </Button>
          </>
        ) : (
          <span className="text-ink-faint">{t("settings.fixed", { source: mail.fixedBy })}</span>
        )
      }
    >
      {server ? (
        <Card>
          <DescriptionList
            facts={{
              [t("settings.mail.host")]: (
                <code>
                  {server.host}:{server.port ?? PORTS[server.security]}
                </code>
              ),
              [t("settings.mail.security")]: t(`settings.mail.securities.${server.security}`),
              [t("settings.mail.username")]: server.username,
              [t("settings.mail.sender")]: server.sender,
              [t("settings.mail.agents")]: allowed ? <Allowed allowed={allowed} onChange={props.onAllow} /> : null,
            }}
          />
        </Card>
      ) : (
        <EmptyMessage title={t("settings.mail.none")} />
      )}
      {isChanging ? (
        <MailDialog
          known={mail}
          onClose={() => setChanging(false)}
          onDone={() => {
            setChanging(false);
            props.onChanged();
          }}
        />
      ) : null}
      {isDeleting ? (
        <Confirm
          title={t("settings.mail.deleteTitle")}
          about={t("settings.mail.deleteAbout")}
          confirmLabel={t("settings.mail.delete")}
          action={() => resetSetting(mail)}
          onDone={props.onChanged}
          onClose={() => setDeleting(false)}
        />
      ) : null}
    </PageSection>
  );
}

function Allowed({ allowed, onChange }: { allowed: Setting; onChange: () => void }) {
  const { t } = useTranslation();
  return (
    <>
      {allowed.value === true ? t("settings.yes") : t("settings.no")}{" "}
      {isChangeable(allowed) ? (
        <button type="button" onClick={onChange} className="ml-2 min-h-6 text-accent underline">
          {t("settings.change")}
        </button>
      ) : null}
    </>
  );
}
