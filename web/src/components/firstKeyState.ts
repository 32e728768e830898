/** True while the first admin key is being created. Its creation requires a login; the login form must not appear
 * before the user has seen the key. */
import { create } from "zustand";

export const useFirstKey = create<{ isCreatingFirstKey: boolean }>(() => ({ isCreatingFirstKey: false }));

export const setCreatingFirstKey = (isCreatingFirstKey: boolean) =>
  useFirstKey.setState({ isCreatingFirstKey: isCreatingFirstKey });
