import { useRouter } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { isNotFound } from "@/api/http";
import { Page } from "./Page";
import { ErrorMessage } from "./StatusMessage";

/** Shown instead of a page that could not be loaded: its title, the error, and links to continue. */
export function PageFailed(props: {
  error: unknown;
  /** The requested name or id. */
  name?: string;
  /** The list of things of the same kind. */
  back?: { to: string; name: string };
  onRetry?: () => void;
}) {
  const { t } = useTranslation();
  const router = useRouter();
  const gone = isNotFound(props.error);
  const onRetry = props.onRetry ?? (() => void router.invalidate());
  return (
    <Page title={props.name ?? t("loading.failed")} {...(props.back ? { back: props.back } : {})}>
      <ErrorMessage error={props.error} isGone={gone} {...(gone ? {} : { onRetry: onRetry })} />
    </Page>
  );
}
