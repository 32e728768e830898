import { useRouter } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { isGone } from "@/api/http";
import { Page } from "./Page";
import { ErrorMessage } from "./StatusMessage";

/** Instead of a page: which it would have been, why it is not there, and the ways on. */
export function PageFailed(props: {
  error: unknown;
  /** What was looked for. */
  name?: string;
  /** Where others like it are. */
  back?: { to: string; name: string };
  again?: () => void;
}) {
  const { t } = useTranslation();
  const router = useRouter();
  const gone = isGone(props.error);
  const again = props.again ?? (() => void router.invalidate());
  return (
    <Page title={props.name ?? t("told.failed")} {...(props.back ? { back: props.back } : {})}>
      <ErrorMessage why={props.error} isGone={gone} {...(gone ? {} : { again })} />
    </Page>
  );
}
