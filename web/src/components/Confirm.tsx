import { useMutation } from "@tanstack/react-query";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { DialogActions } from "./DialogActions";
import { ErrorMessage } from "./StatusMessage";

/** Asks before something cannot be taken back; stays open, with the reason, where it fails. */
export function Confirm(props: {
  title: string;
  about: string;
  /** What the button says: the deed itself, not "OK". */
  deed: string;
  /** Nothing is lost by it. */
  isHarmless?: boolean;
  /** What the way out says, where the deed itself is to cancel. */
  keep?: string | undefined;
  act: () => Promise<unknown>;
  /** Once it is done: what else follows. */
  onDone?: () => unknown;
  onClose: () => void;
}) {
  const act = useMutation({
    mutationFn: props.act,
    onSuccess: async () => {
      await props.onDone?.();
      props.onClose();
    },
  });
  return (
    <Dialog open onClose={props.onClose} title={props.title} about={props.about}>
      {act.isError ? (
        <div className="mb-3">
          <ErrorMessage why={act.error} />
        </div>
      ) : null}
      <DialogActions onClose={props.onClose} keep={props.keep}>
        <Button kind={props.isHarmless ? "primary" : "danger"} disabled={act.isPending} onClick={() => act.mutate()}>
          {props.deed}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
