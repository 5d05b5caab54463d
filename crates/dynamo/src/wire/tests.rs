//! Bodies and what DynamoDB says of them.
