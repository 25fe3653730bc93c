export interface GraphqlError {
  readonly message: string;
}
